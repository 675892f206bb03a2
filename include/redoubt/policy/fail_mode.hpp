// SPDX-License-Identifier: BSL-1.0
//
// What a gate does when it cannot ask Redis. The choice is a template parameter without a default, so that it
// can be read in the route's declaration, and it shapes the answer, so that 429 and 503 cannot be confused.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include <redoubt/core/failure.hpp>

namespace redoubt {

/// The answer of a gate that fails closed. Not a bool on purpose; switch over it.
enum class verdict : std::uint8_t {
  admitted,     ///< Go on.
  refused,      ///< The rule says no: over the limit (HTTP 429), or an attempt exists already (409).
  unavailable,  ///< The rule could not be checked (HTTP 503): nothing protected may start.
};

/// The answer of a gate that fails open.
enum class open_verdict : std::uint8_t {
  admitted,  ///< Go on; `degraded()` says whether the rule was checked.
  refused,   ///< The rule says no: over the limit (HTTP 429), or an attempt exists already (409).
  error,     ///< Something that must not fail open: a wrong configuration, a mistake, or the caller's own
             ///< cancellation.
};

/// The enumerator's name; never empty.
[[nodiscard]] std::string_view to_string(verdict v) noexcept;
/// @copydoc to_string(verdict)
[[nodiscard]] std::string_view to_string(open_verdict v) noexcept;
/// Prints `to_string(v)`.
std::ostream& operator<<(std::ostream& out, verdict v);
/// @copydoc operator<<(std::ostream&, verdict)
std::ostream& operator<<(std::ostream& out, open_verdict v);

/// When Redis cannot be asked, refuse: for what must not happen unprotected (logins, payments). Everything
/// that is not a clear answer is `unavailable`.
struct fail_closed {
  using verdict_type = verdict;
  /// The verdict when there is no answer.
  [[nodiscard]] static verdict without_answer(failure const&) noexcept { return verdict::unavailable; }
};

/// When Redis cannot be asked, go on without it and say so: for what is worth more than its protection. Only
/// what `failure::fail_mode_applies()` covers is let through; mistakes and cancellation are `error`.
struct fail_open {
  using verdict_type = open_verdict;
  /// @copydoc fail_closed::without_answer
  [[nodiscard]] static open_verdict without_answer(failure const& why) noexcept {
    return why.fail_mode_applies() ? open_verdict::admitted : open_verdict::error;
  }
};

/// `fail_open` or `fail_closed`.
template <class Mode>
concept fail_mode = std::same_as<Mode, fail_open> || std::same_as<Mode, fail_closed>;

}  // namespace redoubt
