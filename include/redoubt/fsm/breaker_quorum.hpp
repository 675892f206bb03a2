// SPDX-License-Identifier: BSL-1.0
//
// What other processes say about a dependency, as a hint for this one's breaker: heard only when several of
// them say it at the same time, because one alone may have a broken path of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <redoubt/core/time.hpp>

namespace redoubt {

/// When the others are believed.
struct breaker_quorum_options {
  /// So many different nodes, this one not counted, must have said it. Default 2. Range 2 .. 100.
  std::uint32_t nodes = 2;
  /// Within this time; what is older is not looked at. Default 10 s. Range 1 s .. 1 h; whole milliseconds
  /// count.
  duration window = std::chrono::seconds(10);

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// A node says that its breaker opened because of what it saw itself.
struct breaker_report {
  std::string_view node;
  /// How long ago it said so. Negative (the store's clock went back): not looked at.
  duration age{};
};

/// Numbers of a `breaker_quorum`.
struct breaker_quorum_snapshot {
  std::uint32_t others = 0;   ///< Different other nodes whose news counted, at the last reading.
  std::uint64_t quorums = 0;  ///< Readings that came to a quorum.
};

/// Sans-io machine. Copyable value; for one caller at a time. It keeps no reports: each reading stands for
/// itself, so when nothing can be read there is no opinion.
class breaker_quorum {
 public:
  /// `own` is this node's name. Throws `option_error` when an option is out of range.
  breaker_quorum(breaker_quorum_options const& options, std::string own);

  /// What was read; `asked` is the time before the question was sent, so that news count as rather too old
  /// than too young. With a quorum: until when it lasts, which is when the oldest of the news that it needs
  /// leaves the window.
  [[nodiscard]] std::optional<time_point> on_reports(std::span<breaker_report const> reports,
                                                     time_point asked);
  /// This node's own breaker has opened, or is still open: what was said up to now is dealt with, and its own
  /// trials tell it how things stand.
  void settle(time_point now) noexcept;

  [[nodiscard]] breaker_quorum_options const& options() const noexcept { return options_; }
  [[nodiscard]] std::string const& own() const noexcept { return own_; }
  [[nodiscard]] breaker_quorum_snapshot snapshot() const noexcept { return counts_; }

 private:
  breaker_quorum_options options_;
  std::string own_;
  time_point settled_ = time_point::min();
  breaker_quorum_snapshot counts_;
};

}  // namespace redoubt
