// SPDX-License-Identifier: BSL-1.0
//
// What a probe of Redis found out: three capabilities, because each can be missing while the others are
// there.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string_view>

#include <redoubt/core/failure.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/resp/reply.hpp>

namespace redoubt {

/// Whether Redis can do something for us.
enum class capability : std::uint8_t {
  no,             ///< It cannot; `probe_report::cause` says why.
  yes,            ///< It did.
  misconfigured,  ///< It would not let us: no password, no right. Waiting does not help; alert somebody.
};

/// The enumerator's name; never empty.
[[nodiscard]] std::string_view to_string(capability c) noexcept;
/// Prints `to_string(c)`.
std::ostream& operator<<(std::ostream& out, capability c);

/// The result of one probe. Value type.
struct probe_report {
  /// Redis answered something, be it an error: the process is there and speaks. PING can fail while this is
  /// true (MISCONF).
  bool answers = false;
  /// A GET was answered with a value or nil.
  capability reads = capability::no;
  /// A SET was executed.
  capability writes = capability::no;
  /// The failure behind the worst of the three; code `unspecified` when all is well.
  failure cause{};
  /// How long the probe took.
  duration took{};
  /// When it ended, on the context's clock.
  time_point at{};

  /// True when Redis reads and writes.
  [[nodiscard]] bool healthy() const noexcept {
    return reads == capability::yes && writes == capability::yes;
  }
  /// The cause in one word: "OOM", "READONLY", "deadline_exceeded"; empty when all is well.
  [[nodiscard]] std::string_view cause_text() const noexcept;
};

/// Prints "answers, reads, does not write (OOM), 0.6 ms".
std::ostream& operator<<(std::ostream& out, probe_report const& r);

namespace detail {

/// Judges the answers to PING, GET and SET; fewer than three mean that nothing is known.
[[nodiscard]] probe_report judge_probe(std::span<result<reply> const> answers);

}  // namespace detail

}  // namespace redoubt
