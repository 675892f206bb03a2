// SPDX-License-Identifier: BSL-1.0
//
// How much extra load may be made of the ordinary one: retries and second copies are paid with tokens, which
// ordinary operations earn. In an outage nothing is earned, so the extra load ends instead of multiplying.
#pragma once

#include <cstdint>

#include <redoubt/core/time.hpp>

namespace redoubt {

/// How tokens are earned and kept.
struct extra_tokens_options {
  /// Tokens that one ordinary operation earns. Default 0.1: one extra for ten. Range 0 .. 1.
  double ratio = 0.1;
  /// Tokens earned in a second whatever happens, so that who has little traffic can retry at all. Default 1.
  /// Range 0 .. 1000, in steps of a thousandth.
  double per_second = 1;
  /// The most that can be saved; it starts full. Default 10. Range 2 .. 10000.
  std::uint32_t capacity = 10;

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// The tokens. In any stretch of time at most `capacity + ratio * operations + per_second * seconds` are
/// given out. Sans-io machine: value type, not thread-safe.
class extra_tokens {
 public:
  /// Throws `option_error` when the options are out of range.
  explicit extra_tokens(extra_tokens_options const& options = {});

  /// Takes `price` tokens, or none when there are fewer. `operations` is the number of ordinary operations
  /// since the start, which may not fall; a `now` before the last one counts as the last one.
  [[nodiscard]] bool take(std::uint32_t price, std::uint64_t operations, time_point now) noexcept;

  /// Tokens at the last `take`.
  [[nodiscard]] double balance() const noexcept;

  /// Throws `std::logic_error` when an invariant does not hold.
  void check() const;

 private:
  std::int64_t capacity_;  // in millionths of a millionth of a token, as all the others
  std::int64_t per_operation_;
  std::int64_t per_nanosecond_;
  std::int64_t balance_;
  std::uint64_t operations_ = 0;  // that have earned already
  time_point earned_until_ = time_point::min();
};

}  // namespace redoubt
