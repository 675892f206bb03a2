// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/accept_ratio.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void accept_ratio_options::validate() const {
  detail::require_option(multiplier >= 1 && multiplier <= 100, "adaptive_throttle", "multiplier", multiplier,
                         "must be 1 to 100");
  detail::require_option(window >= 1s && window <= 1h, "adaptive_throttle", "window", window,
                         "must be 1 s to 1 h");
  detail::require_option(minimum >= 1 && minimum <= 1'000'000, "adaptive_throttle", "minimum",
                         std::uint64_t{minimum}, "must be 1 to 1000000");
  detail::require_option(most >= 0 && most <= 0.999, "adaptive_throttle", "most", most, "must be 0 to 0.999");
}

accept_ratio::accept_ratio(accept_ratio_options const& options)
    : multiplier_((options.validate(), static_cast<std::uint64_t>(std::llround(options.multiplier * 1000)))),
      most_(static_cast<std::uint64_t>(std::llround(options.most * 1000))),
      minimum_(options.minimum),
      step_length_(options.window / slot_count) {}

void accept_ratio::move_to(time_point now) noexcept {
  auto const since = std::max(now.time_since_epoch(), time_point::duration::zero());
  auto const step = std::max(step_, static_cast<std::uint64_t>(since / step_length_));
  auto const moved = std::min<std::uint64_t>(step - step_, slot_count);
  for (std::uint64_t n = 0; n < moved; ++n) {
    auto& old = slots_[static_cast<std::size_t>((step - n) % slot_count)];
    requests_ -= old.requests;
    accepts_ -= old.accepts;
    old = {};
  }
  step_ = step;
}

accept_ratio::share accept_ratio::refused() const noexcept {
  auto const worth_sending = multiplier_ * accepts_;
  auto const asked = 1000 * requests_;
  if (requests_ < minimum_ || asked <= worth_sending) return {0, 1};
  auto const of = 1000 * (requests_ + 1);
  return {std::min(asked - worth_sending, most_ * (requests_ + 1)), of};
}

bool accept_ratio::admit(time_point now, random_source& random) noexcept {
  move_to(now);
  auto const [part, of] = refused();
  if (part == 0 || !random.chance(part, of)) return true;
  ++current().requests;
  ++requests_;
  return false;
}

void accept_ratio::record(time_point now, bool accepted) noexcept {
  move_to(now);
  ++current().requests;
  ++requests_;
  if (!accepted) return;
  ++current().accepts;
  ++accepts_;
}

double accept_ratio::refused_share(time_point now) noexcept {
  move_to(now);
  auto const [part, of] = refused();
  return static_cast<double>(part) / static_cast<double>(of);
}

void accept_ratio::check() const {
  slot sum;
  for (auto const& each : slots_) {
    sum.requests += each.requests;
    sum.accepts += each.accepts;
  }
  if (sum.requests != requests_ || sum.accepts != accepts_)
    throw std::logic_error("accept_ratio: the sums do not match");
  if (accepts_ > requests_) throw std::logic_error("accept_ratio: more accepts than requests");
}

}  // namespace redoubt
