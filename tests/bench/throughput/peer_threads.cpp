// SPDX-License-Identifier: BSL-1.0
//
// Eight threads: one client of this library that all of them share, next to a hiredis connection for each.
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <redoubt/client.hpp>

#include "peer.hpp"
#include "peer_redoubt.hpp"

namespace bench {
namespace {

namespace asio = boost::asio;

constexpr std::size_t thread_count = 8;

/// Adds up what the threads of one run have counted.
class total {
 public:
  explicit total(cell const& what, double seconds) : whole_(what, seconds) {}
  void add(sample const& part) {
    std::lock_guard const lock(mutex_);
    sum_.answers += part.answers;
    sum_.wrong += part.wrong;
    sum_.failed += part.failed;
    sum_.allocations += part.allocations;
  }
  sample finish() {
    auto out = whole_.finish();
    out.answers = sum_.answers;
    out.wrong = sum_.wrong;
    out.failed = sum_.failed;
    out.allocations += sum_.allocations;
    return out;
  }

 private:
  run_meter whole_;
  std::mutex mutex_;
  sample sum_;
};

/// One thread's part of the calls, all on an io_context of its own.
class caller {
 public:
  caller(redoubt::client& client, cell const& what, double seconds)
      : client_(client),
        meter_(what, seconds) {}

  sample run(std::size_t in_flight) {
    for (std::size_t i = 0; i < in_flight; ++i) begin();
    context_.run();  // not stopped: the client's thread may still be inside its last post
    return meter_.finish();
  }

 private:
  void begin() {
    auto const i = meter_.next_key();
    client_.async_call(command_for(meter_, i), {},
                       asio::bind_executor(context_, [this, i](redoubt::result<redoubt::reply> r) {
                         judge_redoubt(meter_, r, i);
                         if (!meter_.over()) begin();
                       }));
  }

  redoubt::client& client_;
  asio::io_context context_{1};
  run_meter meter_;
};

class shared_client final : public peer {
 public:
  explicit shared_client(int port)
      : client_(context_, options_for(port)),
        runner_([this] { context_.run(); }) {
    for (int tries = 0; tries < 50 && !connected_; ++tries) {
      connected_ = client_.async_call(redoubt::command("PING"), {}, asio::use_future).get().has_value();
    }
    if (!connected_) throw std::runtime_error("redoubt: cannot connect");
  }
  ~shared_client() override {
    context_.stop();
    runner_.join();
  }
  [[nodiscard]] std::string_view name() const override { return "redoubt-8-threads"; }
  [[nodiscard]] std::string_view about() const override {
    return "one client on a thread of its own; 8 threads share it, an eighth of the calls each, completions "
           "on "
           "the calling thread's own io_context";
  }
  [[nodiscard]] bool takes(cell const& what) const override {
    return what.in_flight >= 64 && what.in_flight % thread_count == 0;
  }

  sample run(cell const& what, double seconds) override {
    total sum(what, seconds);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < thread_count; ++i) {
      threads.emplace_back([&] {
        caller one(client_, what, seconds);
        sum.add(one.run(what.in_flight / thread_count));
      });
    }
    for (auto& thread : threads) thread.join();
    return sum.finish();
  }

 private:
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  redoubt::client client_;
  bool connected_ = false;
  std::thread runner_;
};

/// `blocking` with 8 in flight, in a cell of another number, so that both stand side by side.
class blocking_threads final : public peer {
 public:
  explicit blocking_threads(int port) { add_hiredis(both_, port); }
  [[nodiscard]] std::string_view name() const override { return "hiredis-8-threads"; }
  [[nodiscard]] std::string_view about() const override {
    return "8 threads, each with a blocking connection of its own and one call in flight; no time limit";
  }
  [[nodiscard]] bool takes(cell const& what) const override {
    return what.in_flight >= 64 && what.of->what != shape::batch;
  }
  sample run(cell const& what, double seconds) override {
    return both_.front()->run({what.of, thread_count}, seconds);
  }

 private:
  peer_list both_;
};

}  // namespace

void add_threads(peer_list& peers, int port) {
  peers.push_back(std::make_unique<shared_client>(port));
  peers.push_back(std::make_unique<blocking_threads>(port));
}

}  // namespace bench
