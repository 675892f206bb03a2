// SPDX-License-Identifier: BSL-1.0
//
// How Redis reads the time in EX, PX, EXAT and PXAT: shared by the commands that set an expiry.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "fake_core.hpp"

namespace redoubt::testing::detail {

/// The unit of an expiry, and what it counts from.
struct expiry_unit {
  bool seconds;
  bool absolute;
};

inline void invalid_expiry(call& c) {
  c.out.error(fmt::format("ERR invalid expire time in '{}' command", c.spec.name));
}

/// The absolute expiry that a positive `text` means; nothing, with the error written, when it is not one.
inline std::optional<std::int64_t> read_expiry(call& c, std::size_t word, expiry_unit unit) {
  auto const number = c.integer(word);
  if (!number) return std::nullopt;
  constexpr auto max = std::numeric_limits<std::int64_t>::max();
  auto const base = unit.absolute ? 0 : c.ms();
  auto const factor = unit.seconds ? 1000 : 1;
  if (*number <= 0 || *number > max / factor || *number * factor > max - base) {
    invalid_expiry(c);
    return std::nullopt;
  }
  return *number * factor + base;
}

}  // namespace redoubt::testing::detail
