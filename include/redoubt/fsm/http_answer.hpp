// SPDX-License-Identifier: BSL-1.0
//
// What an HTTP answer means for a retry: its status, and the pause it asks for. For whatever HTTP library the
// application uses: texts and numbers come in, no clock is read.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include <redoubt/core/failure.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/call_outcome.hpp>

namespace redoubt {

/// The parts of an HTTP answer that matter here.
struct http_answer {
  /// The status code.
  unsigned status = 0;
  /// Value of the field Retry-After; empty when there is none.
  std::string_view retry_after{};
  /// Value of the field Date; empty when there is none. A Retry-After that names a moment is measured from
  /// it, so that it does not matter how wrong the clock of this machine is.
  std::string_view date{};
  /// The service says that this operation was done before, under the same idempotency key. Which status or
  /// field says so differs from service to service.
  bool duplicate = false;
};

/// Which end of a call an answer is. 429 is `throttled`; 500, 502, 503 and 504 are `server_failure`;
/// everything else from 400 on is `rejected`, and below 400 a `success`; a number that is no status is
/// `malformed_response`.
[[nodiscard]] call_outcome outcome_of(http_answer const& answer) noexcept;

/// The failure that stands for an answer, with the pause that the service asks for; none when it is a
/// success. `wall_clock` is the time on this machine, used only for a Retry-After with a date in an answer
/// without one. The text names the status.
[[nodiscard]] std::optional<failure> failure_of(http_answer const& answer,
                                                std::chrono::sys_seconds wall_clock);

/// A Retry-After (RFC 9110, 10.2.3) as a pause: a number of seconds, or a date seen from `now`. A date that
/// has passed is no pause; none longer than a year; nothing when the text is neither.
[[nodiscard]] std::optional<duration> parse_retry_after(std::string_view text, std::chrono::sys_seconds now);

/// A date in any of the three forms of RFC 9110, 5.6.7. `now` decides the century of the form that has two
/// digits for the year.
[[nodiscard]] std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text,
                                                                      std::chrono::sys_seconds now);

}  // namespace redoubt
