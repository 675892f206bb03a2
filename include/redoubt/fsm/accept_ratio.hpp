// SPDX-License-Identifier: BSL-1.0
//
// Which share of the requests to a service is worth sending, by the share that it has accepted of late:
// client-side throttling as in "Site Reliability Engineering" (Beyer et al., 2016), chapter 21, "Handling
// Overload".
#pragma once

#include <array>
#include <cstdint>

#include <redoubt/core/random.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

/// How a throttle behaves.
struct accept_ratio_options {
  /// The K of the formula: how many requests are made for one that is accepted. 2 sends twice what the
  /// service takes, so that its recovery is noticed soon; less is gentler and slower. Default 2. Range 1 ..
  /// 100.
  double multiplier = 2;
  /// What counts as "of late". After an outage the refusals end within about three windows. Default 30 s; the
  /// book takes 2 min. Range 1 s .. 1 h.
  duration window = std::chrono::seconds(30);
  /// With fewer requests in the window nothing is refused. Default 10. Range 1 .. 1'000'000.
  std::uint32_t minimum = 10;
  /// Never refuse a larger share than this, so that some always ask whether the service is back. Default 0.9.
  /// Range 0 .. 0.999.
  double most = 0.9;

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// Counts requests and accepts over a rolling window and refuses with the probability
/// max(0, (requests - K * accepts) / (requests + 1)). What is refused here counts as a request too; that is
/// what makes the share settle. Sans-io machine: value type, not thread-safe. A `now` before the last one
/// counts as the last one.
class accept_ratio {
 public:
  /// Throws `option_error` when the options are out of range.
  explicit accept_ratio(accept_ratio_options const& options = {});

  /// True when a request at `now` may be sent; its end must then be given to `record`, unless it says nothing
  /// about the service. False: refused, and counted.
  [[nodiscard]] bool admit(time_point now, random_source& random) noexcept;

  /// A request that was sent has ended.
  void record(time_point now, bool accepted) noexcept;

  /// The share that is refused at `now`.
  [[nodiscard]] double refused_share(time_point now) noexcept;

  /// Requests in the window, those refused here included.
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }
  /// Accepted ones in the window.
  [[nodiscard]] std::uint64_t accepts() const noexcept { return accepts_; }

  /// Throws `std::logic_error` when an invariant does not hold.
  void check() const;

 private:
  struct share {
    std::uint64_t part, of;
  };
  struct slot {
    std::uint64_t requests = 0, accepts = 0;
  };
  // The window moves in steps of a sixteenth.
  static constexpr std::size_t slot_count = 16;

  void move_to(time_point now) noexcept;
  [[nodiscard]] share refused() const noexcept;
  [[nodiscard]] slot& current() noexcept { return slots_[static_cast<std::size_t>(step_) % slot_count]; }

  std::uint64_t multiplier_;  // in thousandths, as `most_`: the same decisions on every platform
  std::uint64_t most_;
  std::uint64_t minimum_;
  duration step_length_;
  std::array<slot, slot_count> slots_{};
  std::uint64_t step_ = 0;  // since the clock's epoch
  std::uint64_t requests_ = 0;
  std::uint64_t accepts_ = 0;
};

}  // namespace redoubt
