// SPDX-License-Identifier: BSL-1.0
//
// `failure`: everything a caller can want to know about a call that gave no value. Cheap to copy (88 bytes,
// one shared pointer), default constructible, printable as one sentence.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <redoubt/core/error.hpp>
#include <redoubt/core/phase_times.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

/// A command's name for messages: upper case, at most 15 characters, no argument ever.
class command_name {
 public:
  constexpr command_name() noexcept = default;

  /// Copies and upper-cases the first 15 characters; characters that are not printable ASCII become '?'.
  constexpr explicit command_name(std::string_view name) noexcept {
    for (char c : name.substr(0, text_.size() - 1)) {
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
      text_[size_++] = (c > ' ' && c < 127) ? c : '?';
    }
  }

  [[nodiscard]] constexpr std::string_view view() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, 16> text_{};
  std::uint8_t size_ = 0;
};

/// The parts of a failure that are text; shared between failures of one client.
struct failure_detail {
  /// Where the client connects to, without credentials: `localhost:6379` or `/run/redis.sock`.
  std::string endpoint;
  /// What the server said, at most 256 bytes with unprintable bytes escaped. UNTRUSTED: it may hold parts of
  /// a key or an argument; do not parse it, do not show it to end users.
  std::string server_text;
  /// Our own explanation where the code alone is not enough, e.g. the option that is out of range.
  std::string note;
};

/// Why an operation gave no value. Value type; copies share the text. Thread-safe to copy and read.
struct failure {
  /// What happened.
  errc code = errc::unspecified;
  /// Which error Redis answered with; `none` unless `code` is `server_error`, or the server refused the
  /// handshake.
  server_errc server = server_errc::none;
  /// What Redis may have done.
  redoubt::effect effect = redoubt::effect::unknown;
  /// Where the call was.
  redoubt::phase phase = redoubt::phase::queue;
  /// True when the library refused the call at once, without any attempt on its behalf (a bound, a reconnect
  /// pause, a closed client).
  bool rejected = false;
  /// Sends made for this call: 0 or 1 from the client, more only when a retry was composed around it.
  std::uint8_t attempts = 0;
  /// The command's name, without arguments.
  command_name command{};
  /// Of `breaker_open`: the code of the failure that opened the breaker. Of another refusal of ours that
  /// ended a retry: the code of the attempt before it. `unspecified` otherwise.
  errc cause = errc::unspecified;
  /// From the start of the operation to its end.
  duration elapsed{};
  /// How long to wait before trying again is useful; zero when unknown.
  duration retry_after{};
  /// Text; may be null.
  std::shared_ptr<failure_detail const> detail{};
  /// How `elapsed` divides into phases, for a call that the client took up; all zero for one that was refused
  /// at once and for failures that do not come from a client. A script that had to be sent twice counts its
  /// first round trip as `phase::read`. Around a retry: of the last attempt.
  phase_times times{};

  /// The class by which fail modes and breakers decide. Something unavailable that we rejected ourselves is
  /// `saturated`, so that it never opens a breaker.
  [[nodiscard]] failure_class group() const noexcept;

  /// True when fail-open and fail-closed apply: `unavailable`, `write_refused` and `saturated`. False for
  /// mistakes (they surface) and for the caller's own cancellation.
  [[nodiscard]] bool fail_mode_applies() const noexcept;

  /// One sentence: what, after how long, where, and whether Redis may have executed it. Contains the
  /// command's name and the endpoint, never an argument, a key or a credential; the server's text is included
  /// as the server wrote its first words (`server_text` is marked untrusted because a script may put anything
  /// there).
  [[nodiscard]] std::string message() const;
};

/// Prints `message()`.
std::ostream& operator<<(std::ostream& out, failure const& f);

/// Thrown by `result<T>::value()` when there is no value. Nothing in the library throws it on its own.
class call_error : public std::runtime_error {
 public:
  explicit call_error(failure f) : std::runtime_error(f.message()), failure_(std::move(f)) {}
  /// The whole failure.
  [[nodiscard]] failure const& why() const noexcept { return failure_; }

 private:
  failure failure_;
};

}  // namespace redoubt
