// SPDX-License-Identifier: BSL-1.0
#include <redoubt/core/failure.hpp>

#include <ostream>

#include <fmt/format.h>

namespace redoubt {
namespace {

std::string_view headline(errc code) noexcept {
  switch (code) {
    case errc::unspecified: return "unspecified failure";
    case errc::deadline_exceeded: return "deadline exceeded";
    case errc::cancelled: return "cancelled by the caller";
    case errc::connection_refused: return "connection refused";
    case errc::connect_timeout: return "no connection within connect_timeout";
    case errc::connect_failed: return "connection failed";
    case errc::resolve_failed: return "host name not resolved";
    case errc::connection_lost: return "connection lost";
    case errc::connection_stalled: return "connection stalled and given up";
    case errc::protocol_error: return "the peer does not speak RESP2";
    case errc::reply_too_large: return "reply larger than the bound";
    case errc::request_too_large: return "command larger than bounds.queued_bytes";
    case errc::queue_full: return "too many calls or bytes under way";
    case errc::closed: return "client closed";
    case errc::bad_option: return "bad option";
    case errc::refused_command: return "command cannot share a connection";
    case errc::unexpected_reply: return "unexpected type of reply";
    case errc::server_error: return "server error";
    case errc::bulkhead_full: return "bulkhead full";
    case errc::retries_exhausted: return "no time left for another attempt";
    case errc::load_timeout: return "the loader did not end in time";
    case errc::load_failed: return "the loader failed";
    case errc::breaker_open: return "circuit breaker open";
    case errc::limit_exceeded: return "time limit used up";
    case errc::flight_full: return "too many keys or followers";
    case errc::rate_limited: return "held back by our own rate limit";
    case errc::remote_failed: return "the service failed";
    case errc::remote_throttled: return "the service asks for fewer requests";
    case errc::remote_rejected: return "the service rejected the request";
    case errc::tls_failed: return "TLS handshake failed";
    case errc::tls_untrusted: return "TLS certificate not trusted";
    case errc::no_credentials: return "no credentials for the connection";
    case errc::forked: return "the client belongs to the process that forked this one";
  }
  return "invalid failure";
}

std::string_view place(phase where) noexcept {
  switch (where) {
    case phase::queue: return " while queued";
    case phase::resolve: return " while resolving";
    case phase::connect: return " while connecting";
    case phase::tls: return " in the TLS handshake";
    case phase::handshake: return " in the handshake";
    case phase::write: return " while writing";
    case phase::read: return " while reading";
    case phase::done: return "";
  }
  return "";
}

/// False for what happens in guards around any operation.
bool about_redis(errc code) noexcept {
  switch (code) {
    case errc::bulkhead_full:
    case errc::load_timeout:
    case errc::load_failed:
    case errc::breaker_open:
    case errc::limit_exceeded:
    case errc::flight_full:
    case errc::rate_limited: return false;
    default: return true;
  }
}

/// False for what is said of operations that are not Redis, too: by guards, and of other sockets.
bool from_client(errc code) noexcept {
  switch (code) {
    case errc::unspecified:
    case errc::deadline_exceeded:
    case errc::cancelled:
    case errc::retries_exhausted:
    case errc::closed:
    case errc::connection_refused:
    case errc::connect_timeout:
    case errc::connect_failed:
    case errc::resolve_failed:
    case errc::connection_lost:
    case errc::protocol_error: return false;
    default: return true;
  }
}

/// "50 ms", "0.3 ms", "1200 ms": what a reader of a log wants, not nanoseconds.
std::string readable(duration d) {
  auto const ms = std::chrono::duration<double, std::milli>(d).count();
  return ms >= 10 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.2g} ms", ms);
}

/// "; resolve 20 ms, connect 80 ms" when the time went into more than one phase.
std::string divided(phase_times const& times) {
  std::string out;
  int parts = 0;
  for (auto p = phase::queue; p != phase::done; p = static_cast<phase>(static_cast<int>(p) + 1)) {
    if (times.of(p) < std::chrono::milliseconds(1)) continue;
    out += fmt::format("{}{} {}", parts++ == 0 ? "; " : ", ", to_string(p), readable(times.of(p)));
  }
  return parts > 1 ? out : std::string();
}

}  // namespace

failure_class failure::group() const noexcept {
  failure_class base = failure_class::unavailable;
  switch (code) {
    case errc::unspecified:
    case errc::deadline_exceeded:
    case errc::connection_refused:
    case errc::connect_timeout:
    case errc::connect_failed:
    case errc::resolve_failed:
    case errc::connection_lost:
    case errc::connection_stalled:
    case errc::protocol_error:
    case errc::reply_too_large:
    case errc::limit_exceeded:
    case errc::closed:
    case errc::retries_exhausted:
    case errc::tls_failed:
    case errc::no_credentials:
    case errc::remote_failed: base = failure_class::unavailable; break;
    case errc::queue_full:
    case errc::load_timeout:
    case errc::breaker_open:
    case errc::flight_full:
    case errc::rate_limited:
    case errc::remote_throttled:
    case errc::bulkhead_full: return failure_class::saturated;
    case errc::cancelled: return failure_class::cancelled;
    case errc::tls_untrusted:
    case errc::forked:
    case errc::bad_option: return failure_class::misconfigured;
    case errc::request_too_large:
    case errc::refused_command:
    case errc::load_failed:
    case errc::remote_rejected:
    case errc::unexpected_reply: return failure_class::caller_error;
    case errc::server_error: base = classify(server); break;
  }
  return rejected && base == failure_class::unavailable ? failure_class::saturated : base;
}

bool failure::fail_mode_applies() const noexcept {
  auto const g = group();
  return g == failure_class::unavailable || g == failure_class::write_refused ||
         g == failure_class::saturated;
}

std::string failure::message() const {
  std::string out{headline(code)};
  if (code == errc::server_error) out += fmt::format(" {}", to_string(server));
  if (detail && !detail->note.empty()) out += fmt::format(": {}", detail->note);
  if (cause != errc::unspecified) out += fmt::format(", because of: {}", headline(cause));
  if (elapsed > duration::zero()) out += fmt::format(" after {}", readable(elapsed));
  // A default phase next to an unknown effect says nothing: what is queued has not been sent.
  bool const placed = phase != redoubt::phase::queue || effect == redoubt::effect::none;
  if (!rejected && placed) out += place(phase);
  out += divided(times);
  std::string where{command.view()};
  if (detail && !detail->endpoint.empty()) {
    if (!where.empty()) where += ", ";
    where += detail->endpoint;
  }
  if (!where.empty()) out += fmt::format(" ({})", where);
  if (attempts > 1) out += fmt::format(", {} attempts", attempts);
  if (detail && !detail->server_text.empty())
    out += fmt::format(", the server said \"{}\"", detail->server_text);
  bool const remote =
      code == errc::remote_failed || code == errc::remote_throttled || code == errc::remote_rejected;
  bool const redis = !remote && about_redis(code) && (from_client(code) || !where.empty());
  if (redis) {
    out += effect == redoubt::effect::none ? ": Redis did not execute it" : ": Redis may have executed it";
  } else if (remote || code == errc::limit_exceeded || about_redis(code)) {
    out += effect == redoubt::effect::none ? ": it was not executed" : ": it may have been executed";
  }
  if (retry_after > duration::zero()) out += fmt::format("; try again in {}", readable(retry_after));
  return out;
}

std::ostream& operator<<(std::ostream& out, failure const& f) { return out << f.message(); }

}  // namespace redoubt
