// SPDX-License-Identifier: BSL-1.0
//
// What an admission answers.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>

#include <redoubt/core/failure.hpp>
#include <redoubt/policy/fail_mode.hpp>

namespace redoubt {

/// The decision about one entry. Value type; deliberately not convertible to bool.
template <fail_mode Mode>
class [[nodiscard]] ticket {
 public:
  using verdict_type = typename Mode::verdict_type;

  /// Never delivered by the library: refused for want of an answer.
  ticket() : verdict_(Mode::without_answer(failure{.code = errc::cancelled})) {}

  /// Redis answered: this caller was the first, or was not.
  ticket(bool first, std::string idempotency_key)
      : verdict_(first ? verdict_type::admitted : verdict_type::refused),
        idempotency_key_(first ? std::move(idempotency_key) : std::string{}) {}

  /// Redis gave no clear answer, for this reason.
  ticket(failure why, std::string idempotency_key)
      : verdict_(Mode::without_answer(why)),
        idempotency_key_(verdict_ == verdict_type::admitted ? std::move(idempotency_key) : std::string{}),
        error_(std::move(why)),
        answered_(false) {}

  /// Admitted, refused, or the third that depends on the fail mode. Only `admitted` allows the protected
  /// action to start.
  [[nodiscard]] verdict_type verdict() const noexcept { return verdict_; }
  /// What to hand to the provider as its idempotency key. Empty unless admitted, so that it cannot be used by
  /// mistake.
  [[nodiscard]] std::string const& idempotency_key() const noexcept { return idempotency_key_; }
  /// True when the entry was admitted although nothing keeps a second one out.
  [[nodiscard]] bool degraded() const noexcept { return !answered_ && verdict_ == verdict_type::admitted; }
  /// Why there was no clear answer; code `unspecified` when there was one. With effect `unknown` Redis may
  /// hold the entry all the same: repeats are then refused until it expires.
  [[nodiscard]] failure const& error() const noexcept { return error_; }

 private:
  verdict_type verdict_;
  std::string idempotency_key_;
  failure error_{};
  bool answered_ = true;
};

/// Prints "admitted", "refused", "unavailable: deadline exceeded after ...".
std::ostream& operator<<(std::ostream& out, ticket<fail_open> const& t);
/// @copydoc operator<<(std::ostream&, ticket<fail_open> const&)
std::ostream& operator<<(std::ostream& out, ticket<fail_closed> const& t);

}  // namespace redoubt
