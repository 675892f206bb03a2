// SPDX-License-Identifier: BSL-1.0
//
// Operations that end when the test says so, and callers that remember what they were told.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <redoubt/guard/stack.hpp>
#include <redoubt/testing/world.hpp>

namespace test {

/// The operation of a stack. Each start is kept until the test ends it.
class manual_operation {
 public:
  /// For `start_plain<int>`.
  [[nodiscard]] auto operation() {
    return [this](redoubt::call_scope const& scope, auto done, auto const&...) {
      deadlines.push_back(scope.by);
      auto kept = std::make_shared<decltype(done)>(std::move(done));
      pending.push_back([kept](redoubt::result<int> r) { std::move (*kept)(std::move(r)); });
    };
  }

  [[nodiscard]] std::size_t started() const { return pending.size(); }
  /// Ends the start with this number.
  void end(std::size_t which, redoubt::result<int> with) {
    auto end = std::exchange(pending.at(which), nullptr);
    end(std::move(with));
  }
  /// Destroys it without an end.
  void drop(std::size_t which) { pending.at(which) = nullptr; }

  std::vector<std::function<void(redoubt::result<int>)>> pending;
  std::vector<redoubt::deadline> deadlines;
};

/// What a caller was told, and when.
struct told {
  std::optional<redoubt::result<int>> value{};
  redoubt::time_point at{};

  [[nodiscard]] bool ok() const { return value && value->has_value(); }
  [[nodiscard]] redoubt::errc code() const {
    return value && !value->has_value() ? value->error().code : redoubt::errc::unspecified;
  }
};

/// Calls a stack and lets the world do what is due.
template <class Stack, class... Args>
void call(redoubt::testing::world& w, Stack const& s, redoubt::deadline by, told& into, Args... args) {
  s.async([&w, &into](redoubt::result<int> r) { into.value = std::move(r), into.at = w.now(); },
          w.get_executor(), by, std::move(args)...);
}

[[nodiscard]] inline redoubt::failure failed(redoubt::errc code) {
  redoubt::failure f;
  f.code = code;
  return f;
}

}  // namespace test
