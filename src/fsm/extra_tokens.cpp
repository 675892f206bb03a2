// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/extra_tokens.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

namespace {

// One token. A thousandth of a token a second is then one unit a nanosecond: time is converted without a
// remainder.
constexpr std::int64_t unit = 1'000'000'000'000;

/// `count * each`, at most `most`.
std::int64_t product(std::uint64_t count, std::int64_t each, std::int64_t most) {
  if (each == 0) return 0;
  if (count > static_cast<std::uint64_t>(most / each)) return most;
  return static_cast<std::int64_t>(count) * each;
}

}  // namespace

void extra_tokens_options::validate() const {
  detail::require_option(ratio >= 0 && ratio <= 1, "extra_tokens", "ratio", ratio, "must be 0 to 1");
  detail::require_option(per_second >= 0 && per_second <= 1000, "extra_tokens", "per_second", per_second,
                         "must be 0 to 1000");
  detail::require_option(capacity >= 2 && capacity <= 10000, "extra_tokens", "capacity",
                         std::uint64_t{capacity}, "must be 2 to 10000");
}

extra_tokens::extra_tokens(extra_tokens_options const& options)
    : capacity_((options.validate(), options.capacity * unit)),
      per_operation_(std::llround(options.ratio * static_cast<double>(unit))),
      per_nanosecond_(std::llround(options.per_second * 1000)),
      balance_(capacity_) {}

bool extra_tokens::take(std::uint32_t price, std::uint64_t operations, time_point now) noexcept {
  if (earned_until_ == time_point::min())
    earned_until_ = now;  // it starts full: there is nothing to earn yet
  auto const passed = std::max(duration::zero(), duration(now - earned_until_)).count();
  auto const done = std::max(operations, operations_) - operations_;
  // Each part is at most the capacity, so the sum fits.
  balance_ += product(static_cast<std::uint64_t>(passed), per_nanosecond_, capacity_);
  balance_ += product(done, per_operation_, capacity_);
  balance_ = std::min(balance_, capacity_);
  earned_until_ = std::max(earned_until_, now);
  operations_ += done;

  auto const cost = price * unit;
  if (balance_ < cost) return false;
  balance_ -= cost;
  return true;
}

double extra_tokens::balance() const noexcept {
  return static_cast<double>(balance_) / static_cast<double>(unit);
}

void extra_tokens::check() const {
  if (balance_ < 0 || balance_ > capacity_) throw std::logic_error("extra_tokens: balance out of range");
}

}  // namespace redoubt
