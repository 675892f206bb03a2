// SPDX-License-Identifier: BSL-1.0
//
// What a cache answers: the value with its origin, or why there is none.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <redoubt/core/failure.hpp>

namespace redoubt {

/// Where a value came from.
enum class origin : std::uint8_t {
  cached,  ///< From Redis; the loader was not called.
  loaded,  ///< From the loader.
};

/// Why there is no value.
enum class outcome_problem : std::uint8_t {
  none,          ///< There is one.
  busy,          ///< The load was refused, or did not end in time: overload, HTTP 503.
  load_failed,   ///< The loader itself failed: it gave a failure or threw.
  cache_failed,  ///< The cache is misconfigured or misused (NOPERM, WRONGTYPE); such a mistake does not fail
                 ///< open.
  cancelled,     ///< The caller cancelled.
};

/// The enumerator's name; never empty.
[[nodiscard]] std::string_view to_string(origin from) noexcept;
/// @copydoc to_string(origin)
[[nodiscard]] std::string_view to_string(outcome_problem what) noexcept;
/// Prints `to_string(from)`.
std::ostream& operator<<(std::ostream& out, origin from);
/// Prints `to_string(what)`.
std::ostream& operator<<(std::ostream& out, outcome_problem what);

/// The state of an outcome without its value.
struct outcome_state {
  /// Where the value came from; only with `problem` none.
  redoubt::origin origin = redoubt::origin::cached;
  outcome_problem problem = outcome_problem::cancelled;
  /// Why there is no value.
  failure error{};
  /// Set when the cache could not be read or written on the way.
  std::optional<failure> degraded{};
  /// What the loader threw.
  std::exception_ptr exception{};

  /// "loaded, degraded: deadline exceeded after 100 ms ...", "busy: bulkhead full: db after 500 ms while
  /// queued".
  [[nodiscard]] std::string text() const;
  /// Throws the loader's exception, or `call_error` with the failure.
  [[noreturn]] void raise() const;
};

/// A value and where it came from, or why there is none. Value type.
template <class Value>
class [[nodiscard]] outcome {
 public:
  /// Never delivered by the library: a cancelled outcome.
  outcome() = default;
  /// With a value.
  outcome(Value value, outcome_state state) : value_(std::move(value)), state_(std::move(state)) {
    state_.problem = outcome_problem::none;
  }
  /// Without one.
  explicit outcome(outcome_state state) : state_(std::move(state)) {}

  /// True when there is a value.
  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }

  /// The value. Without one it throws: the loader's own exception where it threw, `call_error` otherwise.
  [[nodiscard]] Value const& value() const& {
    if (!value_) state_.raise();
    return *value_;
  }
  /// @copydoc value
  [[nodiscard]] Value& value() & {
    if (!value_) state_.raise();
    return *value_;
  }
  /// @copydoc value
  [[nodiscard]] Value value() && {
    if (!value_) state_.raise();
    return std::move(*value_);
  }

  /// Where the value came from. Only when `ok()`.
  [[nodiscard]] redoubt::origin origin() const noexcept { return state_.origin; }

  /// Why there is no value; `none` when there is one.
  [[nodiscard]] outcome_problem problem() const noexcept { return state_.problem; }

  /// True when the load was refused or did not end in time, which is something else than a loader that
  /// failed.
  [[nodiscard]] bool busy() const noexcept { return state_.problem == outcome_problem::busy; }

  /// Why there is no value; code `unspecified` when there is one.
  [[nodiscard]] failure const& error() const noexcept { return state_.error; }

  /// What the loader threw; null when it did not.
  [[nodiscard]] std::exception_ptr const& exception() const noexcept { return state_.exception; }

  /// True when the cache could not be read or could not be written, value or not.
  [[nodiscard]] bool degraded() const noexcept { return state_.degraded.has_value(); }

  /// The failure of the cache that `degraded()` is about; code `unspecified` when there was none.
  [[nodiscard]] failure const& why_degraded() const noexcept {
    static failure const none{};
    return state_.degraded ? *state_.degraded : none;
  }

  /// Prints everything but the value.
  friend std::ostream& operator<<(std::ostream& out, outcome const& o) { return out << o.state_.text(); }

 private:
  std::optional<Value> value_;
  outcome_state state_;
};

}  // namespace redoubt
