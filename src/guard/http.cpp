// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/http.hpp>

#include <boost/asio/error.hpp>

namespace redoubt {

namespace {

namespace error = boost::asio::error;

bool is_loss(boost::system::error_code const& e) {
  return e == error::eof || e == error::connection_reset || e == error::connection_aborted ||
         e == error::broken_pipe || e == error::not_connected || e == error::network_down ||
         e == error::network_reset || e == error::host_unreachable || e == error::network_unreachable ||
         e == error::shut_down || e == error::bad_descriptor;
}

errc code_of(boost::system::error_code const& e, phase where) {
  if (e == error::operation_aborted) return errc::cancelled;
  switch (where) {
    case phase::resolve: return errc::resolve_failed;
    case phase::queue:
    case phase::connect:
      if (e == error::timed_out) return errc::connect_timeout;
      return e == error::connection_refused ? errc::connection_refused : errc::connect_failed;
    case phase::tls:
    case phase::handshake:
    case phase::write: return e == error::timed_out ? errc::deadline_exceeded : errc::connection_lost;
    case phase::read:
    case phase::done: break;
  }
  if (e == error::timed_out) return errc::deadline_exceeded;
  return is_loss(e) ? errc::connection_lost : errc::protocol_error;
}

}  // namespace

failure transport_failure(boost::system::error_code const& e, phase where) {
  bool const sent = where == phase::write || where == phase::read || where == phase::done;
  failure f;
  f.code = code_of(e, where);
  f.effect = sent ? effect::unknown : effect::none;
  f.phase = where;
  f.attempts = sent ? 1 : 0;
  return f;
}

}  // namespace redoubt
