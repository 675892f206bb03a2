// SPDX-License-Identifier: BSL-1.0
//
// A way back into an execution context for threads that do not know whether it still exists.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>

namespace redoubt::detail {

namespace asio = boost::asio;

/// Keeps the executors that `late_executor`s speak of, and lets go of them when the context ends: an executor
/// must not outlive its context. A service of the context.
class late_executors : public asio::execution_context::service {
 public:
  using key_type = late_executors;

  struct state {
    std::mutex mutex;
    std::uint64_t next = 0;
    std::map<std::uint64_t, asio::any_io_executor> executors;
  };

  static asio::execution_context::id id;
  explicit late_executors(asio::execution_context& context)
      : asio::execution_context::service(context),
        known(std::make_shared<state>()) {}

  std::shared_ptr<state> const known;

 private:
  void shutdown() override;
};

/// Copyable, thread-safe. Neither keeps its context from ending nor counts as work of it.
class late_executor {
 public:
  /// Takes the only reference over: Asio counts them with a fence, which ThreadSanitizer does not know, and
  /// the last one may be let go by any thread.
  explicit late_executor(asio::any_io_executor executor);

  /// Runs `function` on the executor; does nothing once the context is being destroyed.
  template <class Function>
  void post(Function function) const {
    // Under the mutex, so that the context cannot end between the look and the post.
    std::lock_guard const lock(entry_->known->mutex);
    auto const found = entry_->known->executors.find(entry_->number);
    if (found != entry_->known->executors.end()) asio::post(found->second, std::move(function));
  }

 private:
  struct entry {
    entry(std::shared_ptr<late_executors::state> k, std::uint64_t n) : known(std::move(k)), number(n) {}
    entry(entry const&) = delete;
    entry& operator=(entry const&) = delete;
    ~entry();
    std::shared_ptr<late_executors::state> known;
    std::uint64_t number;
  };
  std::shared_ptr<entry const> entry_;
};

/// A callback for an application's own code, to be called by any thread at any time: calls `answer(T)` once,
/// with what the first call brings, or with `nothing` when the last copy ends uncalled.
template <class T, class Answer>
auto once_reply(T nothing, Answer answer) {
  class pending {
   public:
    pending(T n, Answer a) : nothing_(std::move(n)), answer_(std::move(a)) {}
    pending(pending const&) = delete;
    pending& operator=(pending const&) = delete;
    ~pending() {
      try {
        give(std::move(nothing_));
      } catch (...) {  // no memory to say so: the wait ends at its limit
      }
    }
    void give(T value) {
      if (!answered_.exchange(true)) answer_(std::move(value));
    }

   private:
    T nothing_;
    Answer answer_;
    std::atomic<bool> answered_ = false;
  };
  return [state = std::make_shared<pending>(std::move(nothing), std::move(answer))](T value) {
    state->give(std::move(value));
  };
}

}  // namespace redoubt::detail
