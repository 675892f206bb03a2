// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/call_outcome.hpp>

#include <ostream>

namespace redoubt {

namespace {

failure made(errc code, effect done, phase where, std::uint8_t sends) {
  failure f;
  f.code = code;
  f.effect = done;
  f.phase = where;
  f.attempts = sends;
  return f;
}

}  // namespace

std::optional<failure> failure_of(call_outcome what, effect done) {
  switch (what) {
    case call_outcome::success:
    case call_outcome::duplicate_success: return std::nullopt;
    case call_outcome::timeout: {
      bool const sent = done == effect::unknown;
      return made(errc::deadline_exceeded, done, sent ? phase::read : phase::connect, sent ? 1 : 0);
    }
    case call_outcome::delayed_response:
      return made(errc::deadline_exceeded, effect::unknown, phase::read, 1);
    // Also for 503: a gateway answers so when the connection behind it broke while the request was under way.
    case call_outcome::server_failure: return made(errc::remote_failed, effect::unknown, phase::done, 1);
    case call_outcome::throttled: return made(errc::remote_throttled, effect::none, phase::done, 1);
    case call_outcome::connection_refused:
      return made(errc::connection_refused, effect::none, phase::connect, 0);
    case call_outcome::name_not_found: return made(errc::resolve_failed, effect::none, phase::resolve, 0);
    case call_outcome::partial_response: return made(errc::connection_lost, effect::unknown, phase::read, 1);
    case call_outcome::malformed_response: return made(errc::protocol_error, effect::unknown, phase::read, 1);
    case call_outcome::rejected: return made(errc::remote_rejected, effect::none, phase::done, 1);
  }
  return failure{};
}

bool spends_connection(call_outcome what) noexcept {
  switch (what) {
    case call_outcome::success:
    case call_outcome::duplicate_success:
    case call_outcome::server_failure:
    case call_outcome::throttled:
    case call_outcome::rejected: return false;
    case call_outcome::timeout:
    case call_outcome::connection_refused:
    case call_outcome::name_not_found:
    case call_outcome::partial_response:
    case call_outcome::malformed_response:
    case call_outcome::delayed_response: break;
  }
  return true;
}

std::string_view to_string(call_outcome what) noexcept {
  switch (what) {
    case call_outcome::success: return "success";
    case call_outcome::duplicate_success: return "duplicate_success";
    case call_outcome::timeout: return "timeout";
    case call_outcome::server_failure: return "server_failure";
    case call_outcome::throttled: return "throttled";
    case call_outcome::connection_refused: return "connection_refused";
    case call_outcome::name_not_found: return "name_not_found";
    case call_outcome::partial_response: return "partial_response";
    case call_outcome::malformed_response: return "malformed_response";
    case call_outcome::delayed_response: return "delayed_response";
    case call_outcome::rejected: return "rejected";
  }
  return "invalid";
}

std::ostream& operator<<(std::ostream& out, call_outcome what) { return out << to_string(what); }

}  // namespace redoubt
