// SPDX-License-Identifier: BSL-1.0
#include <redoubt/core/error.hpp>
#include <redoubt/core/events.hpp>

#include <ostream>

namespace redoubt {

std::string_view to_string(errc code) noexcept {
  switch (code) {
    case errc::unspecified: return "unspecified";
    case errc::deadline_exceeded: return "deadline_exceeded";
    case errc::cancelled: return "cancelled";
    case errc::connection_refused: return "connection_refused";
    case errc::connect_timeout: return "connect_timeout";
    case errc::connect_failed: return "connect_failed";
    case errc::resolve_failed: return "resolve_failed";
    case errc::connection_lost: return "connection_lost";
    case errc::connection_stalled: return "connection_stalled";
    case errc::protocol_error: return "protocol_error";
    case errc::reply_too_large: return "reply_too_large";
    case errc::request_too_large: return "request_too_large";
    case errc::queue_full: return "queue_full";
    case errc::closed: return "closed";
    case errc::bad_option: return "bad_option";
    case errc::refused_command: return "refused_command";
    case errc::unexpected_reply: return "unexpected_reply";
    case errc::server_error: return "server_error";
    case errc::bulkhead_full: return "bulkhead_full";
    case errc::retries_exhausted: return "retries_exhausted";
    case errc::load_timeout: return "load_timeout";
    case errc::load_failed: return "load_failed";
    case errc::breaker_open: return "breaker_open";
    case errc::limit_exceeded: return "limit_exceeded";
    case errc::flight_full: return "flight_full";
    case errc::rate_limited: return "rate_limited";
    case errc::remote_failed: return "remote_failed";
    case errc::remote_throttled: return "remote_throttled";
    case errc::remote_rejected: return "remote_rejected";
    case errc::tls_failed: return "tls_failed";
    case errc::tls_untrusted: return "tls_untrusted";
    case errc::no_credentials: return "no_credentials";
    case errc::forked: return "forked";
  }
  return "invalid";
}

std::string_view to_string(server_errc code) noexcept {
  switch (code) {
    case server_errc::none: return "none";
    case server_errc::other: return "other";
    case server_errc::err: return "ERR";
    case server_errc::readonly: return "READONLY";
    case server_errc::oom: return "OOM";
    case server_errc::noreplicas: return "NOREPLICAS";
    case server_errc::misconf: return "MISCONF";
    case server_errc::clusterdown: return "CLUSTERDOWN";
    case server_errc::masterdown: return "MASTERDOWN";
    case server_errc::loading: return "LOADING";
    case server_errc::busy: return "BUSY";
    case server_errc::tryagain: return "TRYAGAIN";
    case server_errc::max_clients: return "max_clients";
    case server_errc::noauth: return "NOAUTH";
    case server_errc::wrongpass: return "WRONGPASS";
    case server_errc::noperm: return "NOPERM";
    case server_errc::moved: return "MOVED";
    case server_errc::ask: return "ASK";
    case server_errc::crossslot: return "CROSSSLOT";
    case server_errc::wrongtype: return "WRONGTYPE";
    case server_errc::noscript: return "NOSCRIPT";
    case server_errc::execabort: return "EXECABORT";
    case server_errc::noproto: return "NOPROTO";
    case server_errc::unkillable: return "UNKILLABLE";
    case server_errc::notbusy: return "NOTBUSY";
    case server_errc::busygroup: return "BUSYGROUP";
    case server_errc::nogroup: return "NOGROUP";
  }
  return "invalid";
}

std::string_view to_string(effect what) noexcept {
  switch (what) {
    case effect::none: return "none";
    case effect::unknown: return "unknown";
  }
  return "invalid";
}

std::string_view to_string(phase where) noexcept {
  switch (where) {
    case phase::queue: return "queue";
    case phase::resolve: return "resolve";
    case phase::connect: return "connect";
    case phase::tls: return "tls";
    case phase::handshake: return "handshake";
    case phase::write: return "write";
    case phase::read: return "read";
    case phase::done: return "done";
  }
  return "invalid";
}

std::string_view to_string(failure_class group) noexcept {
  switch (group) {
    case failure_class::unavailable: return "unavailable";
    case failure_class::write_refused: return "write_refused";
    case failure_class::saturated: return "saturated";
    case failure_class::misconfigured: return "misconfigured";
    case failure_class::caller_error: return "caller_error";
    case failure_class::cancelled: return "cancelled";
  }
  return "invalid";
}

std::string_view to_string(event_kind kind) noexcept {
  switch (kind) {
    case event_kind::connecting: return "connecting";
    case event_kind::ready: return "ready";
    case event_kind::lost: return "lost";
    case event_kind::retired: return "retired";
    case event_kind::call_sent: return "call_sent";
    case event_kind::call_finished: return "call_finished";
    case event_kind::late_reply_discarded: return "late_reply_discarded";
    case event_kind::call_rejected: return "call_rejected";
    case event_kind::cache_read_failed: return "cache_read_failed";
    case event_kind::cache_write_failed: return "cache_write_failed";
    case event_kind::cache_value_malformed: return "cache_value_malformed";
    case event_kind::load_refused: return "load_refused";
    case event_kind::limiter_refused: return "limiter_refused";
    case event_kind::limiter_unavailable: return "limiter_unavailable";
    case event_kind::admission_refused: return "admission_refused";
    case event_kind::admission_unavailable: return "admission_unavailable";
    case event_kind::probe_changed: return "probe_changed";
    case event_kind::breaker_opened: return "breaker_opened";
    case event_kind::breaker_trying: return "breaker_trying";
    case event_kind::breaker_recovering: return "breaker_recovering";
    case event_kind::breaker_closed: return "breaker_closed";
  }
  return "invalid";
}

failure_class classify(server_errc code) noexcept {
  switch (code) {
    case server_errc::loading:
    case server_errc::busy:
    case server_errc::masterdown:
    case server_errc::tryagain:
    case server_errc::max_clients: return failure_class::unavailable;
    case server_errc::readonly:
    case server_errc::oom:
    case server_errc::noreplicas:
    case server_errc::misconf:
    case server_errc::clusterdown: return failure_class::write_refused;
    case server_errc::noauth:
    case server_errc::wrongpass:
    case server_errc::noperm:
    case server_errc::moved:
    case server_errc::ask:
    case server_errc::noproto: return failure_class::misconfigured;
    case server_errc::none:
    case server_errc::other:
    case server_errc::err:
    case server_errc::crossslot:
    case server_errc::wrongtype:
    case server_errc::noscript:
    case server_errc::execabort:
    case server_errc::unkillable:
    case server_errc::notbusy:
    case server_errc::busygroup:
    case server_errc::nogroup: return failure_class::caller_error;
  }
  return failure_class::caller_error;
}

std::ostream& operator<<(std::ostream& out, errc code) { return out << to_string(code); }
std::ostream& operator<<(std::ostream& out, server_errc code) { return out << to_string(code); }
std::ostream& operator<<(std::ostream& out, effect what) { return out << to_string(what); }
std::ostream& operator<<(std::ostream& out, phase where) { return out << to_string(where); }
std::ostream& operator<<(std::ostream& out, failure_class group) { return out << to_string(group); }
std::ostream& operator<<(std::ostream& out, event_kind kind) { return out << to_string(kind); }

}  // namespace redoubt
