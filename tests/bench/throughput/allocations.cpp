// SPDX-License-Identifier: BSL-1.0
//
// A malloc defined in the program takes the place of the C library's in every shared library as well, so
// hiredis, libuv and operator new are all counted alike. The cost is one increment and one jump for each
// allocation.
#include "allocations.hpp"

#include <cstddef>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define REDOUBT_BENCH_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REDOUBT_BENCH_SANITIZED 1
#endif

#if defined(__GLIBC__) && !defined(REDOUBT_BENCH_SANITIZED)

namespace {
// Without a constructor and inside the program: reading it never allocates.
constinit thread_local std::uint64_t count = 0;
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t size) noexcept;
void* __libc_calloc(std::size_t items, std::size_t size) noexcept;
void* __libc_realloc(void* old, std::size_t size) noexcept;

__attribute__((visibility("default"))) void* malloc(std::size_t size) noexcept {
  ++count;
  return __libc_malloc(size);
}
__attribute__((visibility("default"))) void* calloc(std::size_t items, std::size_t size) noexcept {
  ++count;
  return __libc_calloc(items, size);
}
__attribute__((visibility("default"))) void* realloc(void* old, std::size_t size) noexcept {
  ++count;
  return __libc_realloc(old, size);
}
}

namespace bench {
bool counts_allocations() noexcept { return true; }
std::uint64_t allocations() noexcept { return count; }
}  // namespace bench

#elif defined(__GLIBC__)

// A sanitizer's malloc tells whoever asks.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(void const volatile*, std::size_t),
                                                         void (*on_free)(void const volatile*));

namespace {
constinit thread_local std::uint64_t count = 0;
bool const counting =
    __sanitizer_install_malloc_and_free_hooks([](void const volatile*, std::size_t) { ++count; },
                                              [](void const volatile*) {}) != 0;
}  // namespace

namespace bench {
bool counts_allocations() noexcept { return counting; }
std::uint64_t allocations() noexcept { return count; }
}  // namespace bench

#else

namespace bench {
bool counts_allocations() noexcept { return false; }
std::uint64_t allocations() noexcept { return 0; }
}  // namespace bench

#endif
