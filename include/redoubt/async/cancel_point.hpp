// SPDX-License-Identifier: BSL-1.0
//
// Cancellation of one operation, from any thread. Asio's cancellation slots must not be touched by two
// threads at once; between guards, whose timers and completions run wherever they run, this is used instead.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace redoubt {

/// Something that can be asked to stop. Kept alive by itself or by what it waits for, never by who asks.
class cancel_listener {
 public:
  virtual ~cancel_listener() = default;
  /// A request to stop. Any thread; at most once per `cancel_point::listen()`.
  virtual void on_cancel() noexcept = 0;
  /// Takes the operation back while it only waits in one of our own queues. True: nothing has been started
  /// and nothing will be, so ending it now is our saturation. False: too late for that. Any thread.
  [[nodiscard]] virtual bool withdraw() noexcept { return false; }
};

/// Where a request to stop arrives, and who is told. One listener at a time: what has been started last.
/// Thread-safe.
class cancel_point {
 public:
  cancel_point() = default;
  cancel_point(cancel_point const&) = delete;
  cancel_point& operator=(cancel_point const&) = delete;

  /// Registers who wants to be told; replaces the one before. When the request has come already, `who` is
  /// told before this returns.
  void listen(std::shared_ptr<cancel_listener> const& who) {
    if (add(who)) who->on_cancel();
  }
  /// The same, but when the request has come already it returns true instead of telling: the caller does.
  [[nodiscard]] bool add(std::shared_ptr<cancel_listener> const& who) {
    std::scoped_lock const lock(mutex_);
    listener_ = who;
    return cancelled_;
  }

  /// Asks to stop, once; further calls do nothing.
  void cancel() noexcept {
    std::shared_ptr<cancel_listener> told;
    {
      std::scoped_lock const lock(mutex_);
      if (std::exchange(cancelled_, true)) return;
      told = listener_.lock();
    }
    if (told) told->on_cancel();
  }

  /// What the listener says to `cancel_listener::withdraw()`; to be followed by `cancel()`.
  [[nodiscard]] bool withdraw() noexcept {
    std::shared_ptr<cancel_listener> asked;
    {
      std::scoped_lock const lock(mutex_);
      asked = listener_.lock();
    }
    return asked && asked->withdraw();
  }

  /// True once `cancel()` was called.
  [[nodiscard]] bool cancelled() const noexcept {
    std::scoped_lock const lock(mutex_);
    return cancelled_;
  }

 private:
  std::mutex mutable mutex_;
  std::weak_ptr<cancel_listener> listener_;
  bool cancelled_ = false;
};

}  // namespace redoubt
