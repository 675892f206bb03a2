// SPDX-License-Identifier: BSL-1.0
//
// Memory for the state of calls that come and go all the time: a few blocks of one size are kept instead of
// being given back, so that in steady state a call allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <new>

namespace redoubt::detail {

/// Up to eight blocks of `Size` bytes. Thread-safe, lock-free: a block is taken and put back by one exchange.
/// What it keeps at the end of the program is not given back.
template <std::size_t Size, std::size_t Align>
class block_cache {
 public:
  [[nodiscard]] static void* take() {
    for (auto& place : places_) {
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (auto* const block = place.exchange(nullptr, std::memory_order_acquire)) return block;
    }
    return fresh(Size);
  }

  static void give_back(void* block) noexcept {
    for (auto& place : places_) {
      void* expected = nullptr;
      if (place.load(std::memory_order_relaxed) != nullptr) continue;
      if (place.compare_exchange_strong(expected, block, std::memory_order_release)) return;
    }
    destroy(block);
  }

  [[nodiscard]] static void* fresh(std::size_t size) {
    if constexpr (Align <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
      return ::operator new(size);
    } else {
      return ::operator new(size, std::align_val_t{Align});
    }
  }
  static void destroy(void* block) noexcept {
    if constexpr (Align <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
      ::operator delete(block);
    } else {
      ::operator delete(block, std::align_val_t{Align});
    }
  }

 private:
  static inline constinit std::array<std::atomic<void*>, 8> places_{};
};

/// An allocator for single objects over it, for `std::allocate_shared`.
template <class T>
struct block_allocator {
  using value_type = T;
  block_allocator() noexcept = default;
  template <class U>
  block_allocator(block_allocator<U> const&) noexcept {}  // NOLINT: allocators convert

  [[nodiscard]] T* allocate(std::size_t n) {
    using cache = block_cache<sizeof(T), alignof(T)>;
    return static_cast<T*>(n == 1 ? cache::take() : cache::fresh(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t n) noexcept {
    using cache = block_cache<sizeof(T), alignof(T)>;
    n == 1 ? cache::give_back(p) : cache::destroy(p);
  }
  friend bool operator==(block_allocator, block_allocator) noexcept { return true; }
};

}  // namespace redoubt::detail
