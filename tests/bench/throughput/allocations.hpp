// SPDX-License-Identifier: BSL-1.0
//
// Counts what the calling thread allocates, in this program and in the shared libraries it uses.
#pragma once

#include <cstdint>

namespace bench {

/// True when this build counts: with glibc.
[[nodiscard]] bool counts_allocations() noexcept;

/// Calls of malloc, calloc and realloc (operator new ends in malloc) that this thread has made. Always 0 when
/// not counted.
[[nodiscard]] std::uint64_t allocations() noexcept;

}  // namespace bench
