// SPDX-License-Identifier: BSL-1.0
//
// What is said on a new connection before any call: AUTH, SELECT, CLIENT SETNAME, and PING last, so that
// `ready` means a live server. All are written at once; the replies are judged in order. HELLO is never sent:
// RESP2 is the contract.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <redoubt/core/failure.hpp>
#include <redoubt/resp/reply.hpp>

namespace redoubt {

/// Who we are.
struct login_options {
  /// ACL user; empty for the default user. Used only together with a password.
  std::string user{};
  /// Password; empty means that AUTH is not sent. Taken as it is, never percent-decoded. Never printed.
  std::string password{};
  /// Database number. Default 0. Range 0 .. 2^31-1; the server has the last word.
  std::uint32_t database = 0;
  /// Shown by CLIENT LIST, and as the source of events. Default "redoubt". Printable ASCII without spaces;
  /// empty means that CLIENT SETNAME is not sent.
  std::string client_name = "redoubt";
};

/// The conversation. Copyable. Internal tier: may change in any version.
class handshake {
 public:
  explicit handshake(login_options const& login);

  /// Everything to write.
  [[nodiscard]] std::string const& bytes() const noexcept { return bytes_; }

  /// What a reply means.
  struct outcome {
    enum class kind : std::uint8_t { pending, done, refused } what = kind::pending;
    failure why{};  ///< With `refused`.
  };

  /// Takes the next reply. A refusal ends the conversation; so does the last reply.
  outcome on_reply(reply const& r);

 private:
  enum class step : std::uint8_t { auth, select, set_name, ping, finished };
  [[nodiscard]] step after(step s) const noexcept;

  std::string bytes_;
  bool has_auth_;
  bool has_select_;
  bool has_name_;
  step step_;
};

}  // namespace redoubt
