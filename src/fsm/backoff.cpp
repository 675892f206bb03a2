// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/backoff.hpp>

#include <cstdint>
#include <limits>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void backoff_options::validate() const {
  detail::require_option(base >= 1ns && base <= 1h, "backoff", "base", base, "must be 1 ns to 1 h");
  detail::require_option(cap >= base && cap <= 24h, "backoff", "cap", cap, "must be `base` to 24 h");
}

backoff::backoff(backoff_options options) : options_(options) { options_.validate(); }

duration backoff::ceiling(backoff_options const& options, unsigned attempt) noexcept {
  // Shift the cap down instead of the base up: no product that could overflow is ever formed.
  auto const width = static_cast<unsigned>(std::numeric_limits<duration::rep>::digits);
  if (attempt >= width || options.base.count() > (options.cap.count() >> attempt)) return options.cap;
  return duration(options.base.count() << attempt);
}

duration backoff::next(random_source& random) {
  auto const limit = static_cast<std::uint64_t>(ceiling(options_, attempts_).count());
  if (attempts_ != std::numeric_limits<unsigned>::max()) ++attempts_;
  return duration(static_cast<duration::rep>(random.below(limit + 1)));
}

}  // namespace redoubt
