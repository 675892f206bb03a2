// SPDX-License-Identifier: BSL-1.0
//
// redis-plus-plus, where it is found: a pool with a connection for each caller.
#include "peer.hpp"

#if defined(REDOUBT_BENCH_REDIS_PLUS_PLUS)

#include <mutex>
#include <optional>
#include <thread>

#include <sw/redis++/redis++.h>

namespace bench {
namespace {

class redis_plus_plus final : public peer {
 public:
  explicit redis_plus_plus(int port) : port_(port) {}
  [[nodiscard]] std::string_view name() const override { return "redis-plus-plus"; }
  [[nodiscard]] std::string_view about() const override {
    return "Redis::get and set; a thread for each command in flight, a pool of as many connections; no time "
           "limit";
  }
  /// Hundreds of threads measure the scheduler, not the client.
  [[nodiscard]] bool takes(cell const& what) const override {
    return what.in_flight <= 64 && (what.of->what == shape::get || what.of->what == shape::set);
  }

  sample run(cell const& what, double seconds) override {
    if (size_ != what.in_flight) {
      size_ = what.in_flight;
      sw::redis::ConnectionOptions where;
      where.host = "127.0.0.1";
      where.port = port_;
      sw::redis::ConnectionPoolOptions pool;
      pool.size = size_;
      redis_.emplace(where, pool);
    }
    run_meter whole(what, seconds);
    std::mutex mutex;
    sample sum;
    auto const part = [&] {
      run_meter meter(what, seconds);
      work(meter);
      auto one = meter.finish();
      std::lock_guard const lock(mutex);
      sum.answers += one.answers;
      sum.wrong += one.wrong;
      sum.failed += one.failed;
      sum.allocations += one.allocations;
      sum.waits_us = std::move(one.waits_us);
    };
    if (size_ == 1) {
      part();
    } else {
      std::vector<std::thread> threads;
      for (std::size_t i = 0; i < size_; ++i) threads.emplace_back(part);
      for (auto& thread : threads) thread.join();
    }
    auto out = whole.finish();
    out.answers = sum.answers;
    out.wrong = sum.wrong;
    out.failed = sum.failed;
    out.allocations = sum.allocations;
    out.waits_us = size_ == 1 ? std::move(sum.waits_us) : std::vector<float>();
    return out;
  }

 private:
  void work(run_meter& meter) {
    while (!meter.over()) {
      auto const i = meter.next_key();
      meter.call_begins();
      try {
        if (meter.of().what == shape::set) {
          auto const done = redis_->set(meter.key(i), meter.value(i));
          done ? meter.acknowledged("OK") : meter.answered_otherwise();
        } else {
          auto const got = redis_->get(meter.key(i));
          got ? meter.answered(*got, i) : meter.answered_otherwise();
        }
      } catch (sw::redis::Error const&) {
        meter.failed();
      }
      meter.call_ends();
    }
  }

  int port_;
  std::size_t size_ = 0;
  std::optional<sw::redis::Redis> redis_;
};

}  // namespace

bool add_redis_plus_plus(peer_list& peers, int port) {
  peers.push_back(std::make_unique<redis_plus_plus>(port));
  return true;
}

}  // namespace bench

#else

namespace bench {
bool add_redis_plus_plus(peer_list&, int) { return false; }
}  // namespace bench

#endif
