// SPDX-License-Identifier: BSL-1.0
//
// Where a connection is in its life; see lifecycle.hpp.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

namespace redoubt {

/// Where a connection is in its life.
enum class link_state : std::uint8_t {
  idle,
  resolving,
  connecting,
  securing,  ///< The TLS handshake is under way.
  handshaking,
  ready,
  backing_off,
  closed,
};

/// The enumerator's name; never empty.
[[nodiscard]] std::string_view to_string(link_state state) noexcept;
/// Prints `to_string(state)`.
std::ostream& operator<<(std::ostream& out, link_state state);

}  // namespace redoubt
