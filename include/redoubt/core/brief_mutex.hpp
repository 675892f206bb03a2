// SPDX-License-Identifier: BSL-1.0
//
// A mutex for a few instructions at a time. To sleep until it is free again and to be woken costs a hundred
// times what it is held for, so whoever finds it taken looks a few times more before that.
#pragma once

#include <mutex>

namespace redoubt::detail {

/// Lockable. Like `std::mutex`, which it is made of.
class brief_mutex {
 public:
  void lock() {
    for (int looked = 0; looked < looks; ++looked) {
      if (mutex_.try_lock()) return;
      pause();
    }
    mutex_.lock();
  }
  [[nodiscard]] bool try_lock() noexcept { return mutex_.try_lock(); }
  void unlock() noexcept { mutex_.unlock(); }

 private:
  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  static constexpr int looks = 40;  // a few microseconds
  std::mutex mutex_;
};

}  // namespace redoubt::detail
