// SPDX-License-Identifier: BSL-1.0
//
// What keeps retries from multiplying an outage: all operations on one dependency share a budget, and an
// attempt that it does not cover is not made.
#pragma once

#include <cstdint>
#include <mutex>

#include <redoubt/core/counter.hpp>
#include <redoubt/core/failure.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/extra_tokens.hpp>

namespace redoubt {

/// Numbers of a `retry_budget`.
struct retry_budget_snapshot {
  std::uint64_t succeeded = 0;  ///< Operations that earned.
  std::uint64_t granted = 0;    ///< Retries that were paid.
  std::uint64_t refused = 0;    ///< Retries that would have been made, were there tokens.
  double balance = 0;           ///< Tokens when last asked.
};

/// Tokens for the retries of one dependency. An operation that succeeds earns `ratio`, each second earns
/// `per_second`; a retry costs 1, after a timeout 2, because the attempt that timed out has cost the
/// dependency real work. So the load on a dead dependency is at most `capacity + per_second * seconds` above
/// that of no retry at all, however many retries each operation may make.
///
/// One per dependency, shared by all the `retry` objects in front of it. Thread-safe; must outlive them. A
/// success costs one atomic addition; only failures take a lock.
class retry_budget {
 public:
  using options = extra_tokens_options;

  /// Throws `option_error` when an option is out of range.
  explicit retry_budget(options const& o = {}) : tokens_(o) {}
  retry_budget(retry_budget const&) = delete;
  retry_budget& operator=(retry_budget const&) = delete;

  /// An operation succeeded.
  void on_success() noexcept { succeeded_.add(); }

  /// Pays for another attempt after one that ended with `why`, if the balance allows.
  [[nodiscard]] bool try_take(failure const& why, time_point now) noexcept;

  /// What another attempt after `why` costs: 2 after a timeout of something that was sent, 1 otherwise.
  [[nodiscard]] static std::uint32_t price(failure const& why) noexcept;

  /// Numbers so far.
  [[nodiscard]] retry_budget_snapshot snapshot() const noexcept;

 private:
  detail::counter succeeded_, granted_, refused_;
  std::mutex mutable mutex_;
  extra_tokens tokens_;  // under the mutex
};

}  // namespace redoubt
