// SPDX-License-Identifier: BSL-1.0
//
// For operations that the application does over HTTP, or over any socket, with a library of its own choice:
// what their answers (`http_answer`, `call_outcome`) and the errors of their sockets mean for a retry.
#pragma once

#include <boost/system/error_code.hpp>

#include <redoubt/core/failure.hpp>
#include <redoubt/fsm/call_outcome.hpp>
#include <redoubt/fsm/http_answer.hpp>

namespace redoubt {

/// The failure that stands for an error of name look-up, connect, handshake, write or read, `where` it
/// happened. Before `phase::write` nothing was sent, so the effect is `none`; from then on it is `unknown`.
///
/// A cancelled operation is `cancelled`. While reading, the end of the stream, a reset and the like are
/// `connection_lost` (a partial response), and every other error `protocol_error` (a malformed one); a
/// truncation that the parser reports in a code of its own has to be told apart by who knows the parser:
/// `failure_of(call_outcome::partial_response)`.
[[nodiscard]] failure transport_failure(boost::system::error_code const& error, phase where);

}  // namespace redoubt
