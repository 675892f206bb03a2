// SPDX-License-Identifier: BSL-1.0
//
// How much memory the process holds, C libraries included.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REDOUBT_TEST_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define REDOUBT_TEST_SANITIZED
#endif
#endif

#ifdef REDOUBT_TEST_SANITIZED
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();  // g++ has no header for it
#else
#include <malloc.h>
#endif

namespace test {

/// Bytes that are allocated and not freed.
inline std::size_t heap_in_use() {
#ifdef REDOUBT_TEST_SANITIZED
  return __sanitizer_get_current_allocated_bytes();
#else
  auto const info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

}  // namespace test
