// SPDX-License-Identifier: BSL-1.0
//
// Whether this process is still the one that made an object. A socket that parent and child share mixes up
// the replies of both, so what has one must not use it after a fork.
#pragma once

#include <cstdint>

namespace redoubt::detail {

/// How many fork()s lie between the start of the program and this process. Thread-safe; costs one load.
[[nodiscard]] std::uint32_t fork_count() noexcept;

}  // namespace redoubt::detail
