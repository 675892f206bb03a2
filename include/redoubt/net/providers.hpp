// SPDX-License-Identifier: BSL-1.0
//
// What an application may provide in the library's place: where a host name leads, and who we are. Both
// answer in their own time and from any thread; a call waits for them no longer than its own limit.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace redoubt {

/// Looks host names up instead of the system's resolver. Implementations must be thread-safe. Names only:
/// numeric addresses and unix paths never come here.
class host_resolver {
 public:
  /// Takes numeric addresses ("10.0.0.7", "fd00::7"), the preferred family first. An empty list, and dropping
  /// every copy uncalled, mean that the name could not be looked up. Only the first call counts. May be
  /// called from any thread, at once or later, also after the client and its context are gone.
  using reply = std::function<void(std::vector<std::string>)>;

  virtual ~host_resolver() = default;

  /// Called for every new connection, but for one name never again before it has answered; the clients of one
  /// execution context that share a resolver share the answer. Must not block: it runs on a thread of the
  /// client. An exception counts as "could not be looked up".
  virtual void resolve(std::string const& host, reply done) = 0;
};

/// User and password for AUTH. Neither is ever printed.
struct credentials {
  /// ACL user; empty for the default user.
  std::string user{};
  /// Password or token; empty means that AUTH is not sent.
  std::string password{};
};

/// Says who we are, anew for every connection, so that passwords and tokens can change under way.
/// Implementations must be thread-safe.
class credentials_provider {
 public:
  /// Takes the credentials; `std::nullopt`, and dropping every copy uncalled, mean that there are none now
  /// (`errc::no_credentials`). Only the first call counts. May be called from any thread, at once or later,
  /// also after the client and its context are gone.
  using reply = std::function<void(std::optional<credentials>)>;

  virtual ~credentials_provider() = default;

  /// Called once per handshake, after the connection (and its TLS) stands. Must not block: it runs on a
  /// thread of the client. The handshake's limit, `reconnect.stall_limit`, bounds the wait for the answer. An
  /// exception counts as "none now"; its text is not shown anywhere.
  virtual void get(reply done) = 0;
};

}  // namespace redoubt
