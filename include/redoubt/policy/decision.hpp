// SPDX-License-Identifier: BSL-1.0
//
// What a rate limiter answers.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>

#include <redoubt/core/failure.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/policy/fail_mode.hpp>

namespace redoubt {

/// An answer of the limiter's rule, when Redis gave one.
struct limiter_answer {
  bool admitted = false;
  /// Attempts left before the next refusal.
  std::uint32_t remaining = 0;
  /// When refused: how long until an attempt can be admitted again; at least 1 ms, at most the window.
  duration retry_after{};
};

/// The decision about one attempt. Value type; deliberately not convertible to bool.
template <fail_mode Mode>
class [[nodiscard]] decision {
 public:
  using verdict_type = typename Mode::verdict_type;

  /// Never delivered by the library: refused for want of an answer.
  decision() : verdict_(Mode::without_answer(failure{.code = errc::cancelled})) {}

  /// Redis answered.
  decision(limiter_answer answer, std::uint32_t limit) noexcept
      : verdict_(answer.admitted ? verdict_type::admitted : verdict_type::refused),
        limit_(limit),
        remaining_(answer.remaining),
        retry_after_(answer.retry_after) {}

  /// Redis could not be asked, for this reason.
  decision(failure why, std::uint32_t limit)
      : verdict_(Mode::without_answer(why)),
        limit_(limit),
        retry_after_(why.retry_after),
        error_(std::move(why)),
        answered_(false) {}

  /// Admitted, refused, or the third that depends on the fail mode.
  [[nodiscard]] verdict_type verdict() const noexcept { return verdict_; }
  /// The limit that was applied.
  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }
  /// Attempts left in the window; 0 when that is not known.
  [[nodiscard]] std::uint32_t remaining() const noexcept { return remaining_; }
  /// When another attempt is worth making; zero when admitted, and when that is not known.
  [[nodiscard]] duration retry_after() const noexcept { return retry_after_; }
  /// True when the attempt was admitted although the rule could not be checked.
  [[nodiscard]] bool degraded() const noexcept { return !answered_ && verdict_ == verdict_type::admitted; }
  /// Why the rule could not be checked; code `unspecified` when it was.
  [[nodiscard]] failure const& error() const noexcept { return error_; }

 private:
  verdict_type verdict_;
  std::uint32_t limit_ = 0;
  std::uint32_t remaining_ = 0;
  duration retry_after_{};
  failure error_{};
  bool answered_ = true;
};

/// Prints "admitted, 3 of 5 left", "refused, try again in 41 s", "unavailable: deadline exceeded after ...".
std::ostream& operator<<(std::ostream& out, decision<fail_open> const& d);
/// @copydoc operator<<(std::ostream&, decision<fail_open> const&)
std::ostream& operator<<(std::ostream& out, decision<fail_closed> const& d);

}  // namespace redoubt
