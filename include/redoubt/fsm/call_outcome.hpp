// SPDX-License-Identifier: BSL-1.0
//
// How a call to any service ends, in eleven ways, and what each of them means for a retry, a breaker and the
// connection. docs/RETRIES.md has the table.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>

#include <redoubt/core/failure.hpp>

namespace redoubt {

/// The end of one call, as seen from this side.
enum class call_outcome : std::uint8_t {
  success,             ///< Answered.
  duplicate_success,   ///< Answered: this was done before, under the same idempotency key. A success.
  timeout,             ///< No answer in time.
  server_failure,      ///< The service, or a gateway in front of it, says that it failed (HTTP 500, 502, 503,
                       ///< 504).
  throttled,           ///< The service says that we ask too often (HTTP 429).
  connection_refused,  ///< Nothing was reached: refused, unreachable.
  name_not_found,      ///< Nothing was reached: the name has no address.
  partial_response,    ///< The answer broke off.
  malformed_response,  ///< The answer makes no sense.
  delayed_response,    ///< The answer came after its caller had been told that it is too late.
  rejected,            ///< The service says that the request is wrong (other HTTP statuses from 400 on).
};

/// The failure that stands for an outcome; none for the two successes. `done` says, for a timeout, whether
/// anything was sent; the other outcomes know.
[[nodiscard]] std::optional<failure> failure_of(call_outcome what, effect done = effect::unknown);

/// True when the connection on which the call ended must not carry another one: the answer may still come, or
/// has left something behind, and would be taken for the next call's.
[[nodiscard]] bool spends_connection(call_outcome what) noexcept;

/// The enumerator's name; never empty.
[[nodiscard]] std::string_view to_string(call_outcome what) noexcept;
/// Prints `to_string(what)`.
std::ostream& operator<<(std::ostream& out, call_outcome what);

}  // namespace redoubt
