// SPDX-License-Identifier: BSL-1.0
//
// Memory for the state of calls that come and go all the time: a few blocks of one size are kept instead of
// being given back, so that in steady state a call allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

namespace redoubt::detail {

/// Blocks of `Size` bytes: up to two for each thread, which it takes and puts back without telling others,
/// and up to eight for all, by one atomic exchange each. Thread-safe, lock-free. A thread's own are given
/// back when it ends; the eight are not.
template <std::size_t Size, std::size_t Align>
class block_cache {
 public:
  [[nodiscard]] static void* take() {
    for (auto& own : own_.blocks) {
      if (own != nullptr) return std::exchange(own, nullptr);
    }
    for (auto& place : places_) {
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (auto* const block = place.exchange(nullptr, std::memory_order_acquire)) return block;
    }
    return fresh(Size);
  }

  static void give_back(void* block) noexcept {
    if (own_.stage == stage::unused) {
      thread_local last_word const at_the_end;
      own_.stage = stage::in_use;
    }
    if (own_.stage == stage::in_use) {
      for (auto& own : own_.blocks) {
        if (own != nullptr) continue;
        own = block;
        return;
      }
    }
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
  enum class stage : unsigned char { unused, in_use, ended };

  // Has no destructor, so that it can be used up to the very end of its thread.
  struct of_a_thread {
    std::array<void*, 2> blocks{};
    enum stage stage = stage::unused;
  };
  struct last_word {
    ~last_word() {
      own_.stage = stage::ended;
      for (auto& own : own_.blocks) {
        if (own != nullptr) destroy(std::exchange(own, nullptr));
      }
    }
  };

  static inline constinit thread_local of_a_thread own_{};
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
