// SPDX-License-Identifier: BSL-1.0
//
// Keeps what the library reports, so that a test can ask for it.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <redoubt/core/events.hpp>
#include <redoubt/core/failure.hpp>

namespace redoubt::testing {

/// An `event_sink` that remembers. Thread-safe. Give it to clients and policies as `.events`; it must outlive
/// them.
class recorder final : public event_sink {
 public:
  /// An event that owns what it says.
  struct entry {
    event_kind kind{};
    std::string source{};
    std::optional<failure> cause{};  ///< Empty when there was none.
    std::optional<call_report> call{};
  };

  /// Keeps the latest `limit` events (at least 1); the counts go on for ever. `calls`: wants to be told of
  /// every call, too.
  explicit recorder(std::size_t limit = 4096, bool calls = false);

  /// Called by the library.
  void on(event const& e) noexcept override;
  [[nodiscard]] bool wants_calls() const noexcept override { return calls_; }

  /// How many events of this kind were seen.
  [[nodiscard]] std::size_t count(event_kind kind) const;
  /// How many events were seen.
  [[nodiscard]] std::size_t count() const;
  /// The latest event; empty when there was none.
  [[nodiscard]] std::optional<entry> last() const;
  /// The latest event of this kind that is still kept.
  [[nodiscard]] std::optional<entry> last(event_kind kind) const;
  /// All that are kept, oldest first.
  [[nodiscard]] std::vector<entry> entries() const;
  /// Forgets everything, the counts as well.
  void clear();

 private:
  std::size_t limit_;
  bool calls_;
  mutable std::mutex mutex_;
  std::deque<entry> entries_;
  std::vector<std::size_t> counts_;
};

}  // namespace redoubt::testing
