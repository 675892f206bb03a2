// SPDX-License-Identifier: BSL-1.0
#include <redoubt/policy/cache_aside_options.hpp>

#include <algorithm>
#include <cmath>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void cache_aside_options::validate() const {
  constexpr auto longest = std::chrono::days(3650);
  detail::require_option(ttl.get() >= 1ms && ttl.get() <= longest, "cache_aside", "ttl", ttl.get(),
                         "must be 1 ms to 3650 days");
  detail::require_option(ttl_spread >= 0 && ttl_spread <= 1, "cache_aside", "ttl_spread", ttl_spread,
                         "must be 0 to 1");
  detail::require_option(load_timeout >= 1ms && load_timeout <= 1h, "cache_aside", "load_timeout",
                         load_timeout, "must be 1 ms to 1 h");
}

namespace detail {

duration spread_ttl(duration ttl, double spread, random_source random) noexcept {
  // In whole milliseconds, as Redis takes them, and symmetric around `ttl`, so that the mean stays what was
  // asked for.
  auto const middle = std::chrono::duration_cast<std::chrono::milliseconds>(ttl).count();
  auto const reach = static_cast<std::int64_t>(std::floor(static_cast<double>(middle) * spread));
  auto const draw = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * reach + 1)));
  return std::chrono::milliseconds(std::max<std::int64_t>(1, middle - reach + draw));
}

failure policy_failure(errc code, duration elapsed) {
  failure f;
  f.code = code;
  f.effect = effect::none;
  f.phase = phase::done;
  f.elapsed = elapsed;
  return f;
}

cache_aside_snapshot cache_aside_counters::read() const noexcept {
  cache_aside_snapshot s;
  s.cached = cached.read();
  s.loaded = loaded.read();
  s.refused = refused.read();
  s.failed = failed.read();
  s.cancelled = cancelled.read();
  s.redis_errors = redis_errors.read();
  s.fallbacks = fallbacks.read();
  s.database_loads = database_loads.read();
  s.write_failures = write_failures.read();
  s.malformed = malformed.read();
  s.requests = requests.read();
  return s;
}

}  // namespace detail

}  // namespace redoubt
