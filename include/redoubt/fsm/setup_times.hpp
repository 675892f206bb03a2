// SPDX-License-Identifier: BSL-1.0
//
// When a connection was in which phase of being made, so that a call that waited for it can say how long it
// waited for what.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include <redoubt/core/phase_times.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

/// The latest eight phases of one connection: two whole attempts, more than a call waits for. `phase::queue`
/// stands for "not being made". Copyable; no clock. Internal tier: may change in any version.
class setup_times {
 public:
  /// From `now` on the connection is in `where`. Nothing happens when it is already.
  void enter(phase where, time_point now) noexcept {
    if (where == where_) return;
    if (where_ != phase::queue) {
      past_[next_] = {where_, since_, now};
      next_ = (next_ + 1) % past_.size();
    }
    where_ = where;
    since_ = now;
  }

  /// Adds to `out` how `from` .. `to` divides into phases; what belongs to none is `phase::queue`.
  void add_to(phase_times& out, time_point from, time_point to) const noexcept {
    auto rest = to - from;
    auto const add = [&](phase where, time_point begin, time_point end) {
      auto const both = std::min(end, to) - std::max(begin, from);
      if (both <= duration::zero()) return;
      out.add(where, both);
      rest -= both;
    };
    for (auto const& one : past_) {
      if (one.where != phase::queue) add(one.where, one.begin, one.end);
    }
    if (where_ != phase::queue) add(where_, since_, to);
    out.add(phase::queue, rest);
  }

 private:
  struct interval {
    phase where = phase::queue;
    time_point begin{};
    time_point end{};
  };

  std::array<interval, 8> past_{};
  std::size_t next_ = 0;
  phase where_ = phase::queue;
  time_point since_{};
};

}  // namespace redoubt
