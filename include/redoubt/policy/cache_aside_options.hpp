// SPDX-License-Identifier: BSL-1.0
//
// Options and numbers of a cache, apart from the template that uses them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <redoubt/core/counter.hpp>
#include <redoubt/core/events.hpp>
#include <redoubt/core/failure.hpp>
#include <redoubt/core/random.hpp>
#include <redoubt/core/required.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/guard/bulkhead.hpp>

namespace redoubt {

/// Options of every `cache_aside`.
struct cache_aside_options {
  /// Source of its events. Default "cache_aside".
  std::string name = "cache_aside";
  /// Put before each key, after the client's own `key_prefix`. No default: caches must not share keys by
  /// accident.
  required<std::string> key;
  /// How long an entry lives. No default. Range 1 ms .. 3650 days.
  required<duration> ttl;
  /// Spreads the lives of entries that are written together: each lives uniformly between `ttl * (1 -
  /// ttl_spread)` and `ttl * (1 + ttl_spread)`, at least 1 ms, `ttl` on average. Touches nothing but the
  /// entry's life. Default 0. Range 0 .. 1.
  double ttl_spread = 0;
  /// Limit of a load: waiting for a slot and the loader's own time together. Default 500 ms. Range 1 ms .. 1
  /// h.
  duration load_timeout = std::chrono::milliseconds(500);
  /// Bounds the loads of every cache that shares it; must outlive the cache. Default: an own one with 8
  /// slots, 64 waiters.
  bulkhead* slots = nullptr;
  /// Told about failures of the cache and refused loads; must outlive the cache. Default: nobody.
  event_sink* events = nullptr;
  /// Seed of `ttl_spread`, for repeatable tests. Default: chosen by the system.
  std::optional<std::uint64_t> seed{};

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// Numbers of a `cache_aside`. When nothing is in flight: `requests == cached + loaded + refused + failed +
/// cancelled`.
struct cache_aside_snapshot {
  std::uint64_t requests = 0;        ///< `get` calls started.
  std::uint64_t cached = 0;          ///< Answered from Redis.
  std::uint64_t loaded = 0;          ///< Answered by the loader.
  std::uint64_t refused = 0;         ///< No slot for the load, or it did not end in time.
  std::uint64_t failed = 0;          ///< The loader failed, or the cache is misconfigured.
  std::uint64_t cancelled = 0;       ///< Cancelled by their callers.
  std::uint64_t redis_errors = 0;    ///< Failed reads, writes and invalidations.
  std::uint64_t fallbacks = 0;       ///< Loads because the cache could not be read.
  std::uint64_t database_loads = 0;  ///< Loaders started, for a miss or a fallback.
  std::uint64_t write_failures = 0;  ///< Loaded values that could not be stored.
  std::uint64_t malformed = 0;       ///< Cached values that could not be decoded.
};

namespace detail {

/// The life of one entry.
[[nodiscard]] duration spread_ttl(duration ttl, double spread, random_source random) noexcept;

/// A failure that is not about a command: effect none.
[[nodiscard]] failure policy_failure(errc code, duration elapsed = {});

struct cache_aside_counters {
  counter requests, cached, loaded, refused, failed, cancelled;
  counter redis_errors, fallbacks, database_loads, write_failures, malformed;
  [[nodiscard]] cache_aside_snapshot read() const noexcept;
};

}  // namespace detail

}  // namespace redoubt
