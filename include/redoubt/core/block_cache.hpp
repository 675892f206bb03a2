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
    return ::operator new(Size, std::align_val_t{Align});
  }

  static void give_back(void* block) noexcept {
    for (auto& place : places_) {
      void* expected = nullptr;
      if (place.load(std::memory_order_relaxed) != nullptr) continue;
      if (place.compare_exchange_strong(expected, block, std::memory_order_release)) return;
    }
    ::operator delete(block, std::align_val_t{Align});
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
    if (n == 1) return static_cast<T*>(block_cache<sizeof(T), alignof(T)>::take());
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{alignof(T)}));
  }
  void deallocate(T* p, std::size_t n) noexcept {
    if (n == 1) return block_cache<sizeof(T), alignof(T)>::give_back(p);
    ::operator delete(p, std::align_val_t{alignof(T)});
  }
  friend bool operator==(block_allocator, block_allocator) noexcept { return true; }
};

}  // namespace redoubt::detail
