// SPDX-License-Identifier: BSL-1.0
//
// Everything an application can say about a client. Aggregates for designated initialisers; every field has a
// default that is safe to run with. `validate()` names the field that is out of range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <redoubt/core/events.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/backoff.hpp>
#include <redoubt/fsm/handshake.hpp>
#include <redoubt/net/providers.hpp>

namespace redoubt {

/// Where Redis is. A `client_options::url` fills these; fields that are set here win over the URL.
struct address_options {
  /// Host name or numeric address (IPv6 without brackets). Default: from the URL, else "127.0.0.1".
  std::string host{};
  /// TCP port. Default 0: from the URL, else 6379. Range 1 .. 65535.
  std::uint16_t port = 0;
  /// Path of a unix socket. When set, host and port are not used.
  std::string unix_path{};
};

/// Versions of TLS that may be asked for.
enum class tls_version : std::uint8_t { v1_2, v1_3 };

/// How a connection is encrypted. Needs the component `redoubt::tls` and one call of `enable_tls()`
/// (redoubt/tls.hpp). Certificates and keys are read once, when the client is made.
struct tls_options {
  /// Encrypt. Default: false, true with a `rediss://` URL. Not with a unix socket. Setting any other field
  /// without it is refused, so that nobody believes to be protected who is not.
  bool enabled = false;
  /// The name (or numeric address) that the server's certificate must be made out to, and that is sent as
  /// SNI. Default: the host.
  std::string server_name{};
  /// PEM file of the authorities to trust. Default: the system's.
  std::string ca_file{};
  /// PEM file with our certificate and its chain, for servers that ask for one. Default: none.
  std::string certificate_file{};
  /// PEM file with the certificate's key. Default: `certificate_file`.
  std::string key_file{};
  /// Password of an encrypted key. Never printed.
  std::string key_password{};
  /// Oldest version of TLS to accept. Default 1.2.
  tls_version minimum = tls_version::v1_2;
  /// Accept every certificate of every peer, on every connection: whoever can redirect packets reads and
  /// changes everything, the password included. Only for experiments. Default false.
  bool insecure_skip_verification = false;
};

/// How long things may take. Each 1 us .. 1 h; "no limit" cannot be written.
struct timeout_options {
  /// Setting up a connection, as a call sees it: from the call's start until the connection is ready. Default
  /// 100 ms.
  duration connect = std::chrono::milliseconds(100);
  /// One attempt: from the moment the call is given to a ready connection until its reply. Default 100 ms.
  duration attempt = std::chrono::milliseconds(100);
  /// Everything together. Default 150 ms.
  duration call = std::chrono::milliseconds(150);
};

/// How much may be under way. A full bound answers at once; nothing waits for room.
struct bound_options {
  /// Calls that have not ended, over all connections. Default 1024. Range 1 .. 1'000'000.
  std::size_t in_flight = 1024;
  /// Bytes of commands that are not yet written, over all connections. Default 16 MiB. Range 1 KiB .. 4 GiB.
  std::size_t queued_bytes = std::size_t{16} << 20;
  /// Bytes of one reply. Default 64 MiB. Range 64 .. 512 MiB.
  std::size_t reply_bytes = std::size_t{64} << 20;
  /// Elements of one array in a reply. Default 1'048'576. Range 1 .. 2^31-1.
  std::size_t array_elements = std::size_t{1} << 20;
  /// Nesting of arrays in a reply. Default 7. Range 1 .. 7, the most that hiredis 0.14 reads.
  std::size_t depth = 7;
  /// Replies that may still be owed to calls that have ended, per connection. More retire it. Default 4096.
  /// Range 1 .. 1'000'000.
  std::size_t late_replies = 4096;
};

/// How a connection comes back.
struct reconnect_options {
  /// Pause after a refused or failed connection: uniform in [0, min(cap, base * 2^n)] (full jitter). Calls
  /// made meanwhile are rejected at once. Default base 10 ms, cap 250 ms. Both 1 us .. 1 h.
  backoff_options backoff{};
  /// Pause after the server refused the handshake (wrong password, too many clients), after a certificate was
  /// not trusted, and when there were no credentials; plus up to as much again. Default 500 ms. Range 1 ms ..
  /// 1 h.
  duration refused_pause = std::chrono::milliseconds(500);
  /// Longest silence of a connection that owes a reply, or of a handshake (TLS, credentials, AUTH); then the
  /// connection is given up and another one is made. Default 1 s. Must not be shorter than
  /// `timeouts.attempt`.
  ///
  /// On TCP the kernel watches too, for what no reply is owed for: keepalive probes begin after a silence of
  /// this length (whole seconds, at least one), follow each other as far apart, and the third that is lost
  /// ends the connection; data that the peer's kernel has not taken after three times this length ends it as
  /// well (TCP_USER_TIMEOUT, where the system has it).
  duration stall_limit = std::chrono::seconds(1);
  /// A ready connection that owes nothing, and on which nothing has arrived for so long, is sent a PING. It
  /// is the connection's own: it takes no room of a call, and its reply is due within `stall_limit` like any
  /// other. So a peer that has gone in silence is found while nobody waits for it. Any bytes count as a sign
  /// of life. Default 5 s. Range 1 ms .. 1 h.
  duration ping_interval = std::chrono::seconds(5);
};

/// Options of a `client`.
struct client_options {
  /// `redis://[user[:password]@]host[:port][/database]`, the same with `rediss://` for TLS, or
  /// `unix:///path[?db=n]`; percent-encoded where needed. Default: empty, the other fields decide.
  std::string url{};
  /// Where Redis is; wins over the URL.
  address_options address{};
  /// Who we are; a field that is set wins over the URL and is never decoded.
  login_options login{};
  /// Asked for user and password at every handshake; then `login.user` and `login.password` must be empty, in
  /// the URL too. Default: nobody, `login` is used.
  std::shared_ptr<credentials_provider> credentials{};
  /// Encryption.
  tls_options tls{};
  /// Looks the host name up, for every new connection. Default: the system's resolver, on a thread that
  /// nobody waits for.
  std::shared_ptr<host_resolver> resolver{};
  /// Put before every key by the policies, by `async_eval` and by `key()`. NOT put before the arguments of
  /// `async_call`, `async_pipeline` and `async_transaction`: a client cannot know which of them are keys.
  /// Default: empty.
  std::string key_prefix{};
  timeout_options timeouts{};
  bound_options bounds{};
  reconnect_options reconnect{};
  /// Connections to keep. One is right for almost everybody: calls share it without waiting for each other.
  /// Default 1. Range 1 .. 64.
  std::uint32_t connections = 1;
  /// Told what happens; must outlive the client. Default: nobody.
  event_sink* events = nullptr;

  /// The first field that is out of range, with its value and its range; no value when all is well. Secrets
  /// are named, never shown. Also parses the URL.
  [[nodiscard]] result<void> validate() const;

  /// The options with the URL taken apart and defaults filled in; a failure (`bad_option`) when `validate()`
  /// has one.
  [[nodiscard]] result<client_options> resolved() const;

  /// Where the client connects to, without credentials, for messages. Meaningful on `resolved()` options.
  [[nodiscard]] std::string endpoint_text() const;
};

/// The parts of a URL.
struct url_parts {
  std::string host{};
  std::uint16_t port = 0;
  std::string unix_path{};
  std::string user{};
  std::string password{};
  std::uint32_t database = 0;
  bool tls = false;
};

/// Takes a `redis://`, `rediss://` or `unix://` URL apart and decodes %XX (a '+' stays a '+'). A failure
/// (`bad_option`) names the part that is wrong and its position; neither user nor password ever appears in
/// it.
[[nodiscard]] result<url_parts> parse_url(std::string_view url);

}  // namespace redoubt
