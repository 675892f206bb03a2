// SPDX-License-Identifier: BSL-1.0
//
// Remembers events, for looking at them afterwards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <redoubt/core/events.hpp>

namespace test {

/// Single-threaded.
class recording_sink final : public redoubt::event_sink {
 public:
  struct entry {
    redoubt::event_kind kind;
    std::string source;
    redoubt::failure cause;
  };

  void on(redoubt::event const& e) noexcept override {
    all.push_back({e.kind, std::string(e.source), e.cause != nullptr ? *e.cause : redoubt::failure{}});
  }

  [[nodiscard]] std::size_t count(redoubt::event_kind kind) const {
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [kind](entry const& e) { return e.kind == kind; }));
  }

  std::vector<entry> all;
};

}  // namespace test
