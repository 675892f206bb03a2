// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/adaptive_limit.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void adaptive_limit_options::validate() const {
  auto const require = [](bool ok, char const* field, auto value, char const* rule) {
    detail::require_option(ok, "adaptive_limit", field, value, rule);
  };
  require(floor >= 1 && floor <= 65536, "floor", std::uint64_t{floor}, "must be 1 to 65536");
  require(initial >= floor && initial <= 65536, "initial", std::uint64_t{initial},
          "must be `floor` to 65536");
  require(tolerance >= 1 && tolerance <= 10, "tolerance", tolerance, "must be 1 to 10");
  require(memory >= 10 && memory <= 100'000, "memory", std::uint64_t{memory}, "must be 10 to 100000");
  require(interval >= 1ms && interval <= 1min, "interval", interval, "must be 1 ms to 1 min");
}

adaptive_limit::adaptive_limit(adaptive_limit_options const& options, std::uint32_t ceiling) noexcept
    : options_(options),
      ceiling_(ceiling),
      limit_(options.initial) {}

std::uint32_t adaptive_limit::limit() const noexcept {
  auto const low = std::min(options_.floor, ceiling_);
  return std::clamp(static_cast<std::uint32_t>(std::lround(limit_)), low, ceiling_);
}

bool adaptive_limit::observe(duration took, std::uint32_t used, time_point now) noexcept {
  auto const sample = static_cast<double>(std::max<duration>(took, 1ns).count());
  // Down quickly, up slowly: else an overload that lasts would become the usual, and the limit rise again in
  // it.
  auto const memory = sample > usual_ ? options_.memory * 10.0 : options_.memory / 10.0;
  usual_ = usual_ == 0 ? sample : usual_ + (sample - usual_) / memory;
  recent_ += sample;
  ++samples_;
  most_used_ = std::max(most_used_, used);
  if (now < next_) return false;
  next_ = saturating_add(now, options_.interval);

  auto const before = limit();
  auto const recent = recent_ / samples_;
  auto const gradient = std::clamp(options_.tolerance * usual_ / recent, 0.5, 1.0);
  auto const wanted = limit_ * gradient + std::sqrt(limit_);
  bool const full = 2 * most_used_ >= before;
  if (wanted < limit_ || full) limit_ = limit_ * 0.8 + wanted * 0.2;
  limit_ = std::clamp(limit_, static_cast<double>(std::min(options_.floor, ceiling_)),
                      static_cast<double>(ceiling_));
  recent_ = 0;
  samples_ = 0;
  most_used_ = 0;
  return limit() != before;
}

void adaptive_limit::check() const noexcept {
  assert(limit() <= ceiling_);
  assert(limit() >= std::min(options_.floor, ceiling_));
  assert(samples_ == 0 ? recent_ == 0 : recent_ > 0);
}

}  // namespace redoubt
