// SPDX-License-Identifier: BSL-1.0
//
// Random faults on real sockets while eight threads call: every call ends once, with its own reply or the
// truth about its failure; the counters balance; the memory comes back. Two seconds; REDOUBT_SOAK_SECONDS=60
// for the published size.
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <redoubt/core/random.hpp>
#include <redoubt/testing/fault_proxy.hpp>

#include "heap.hpp"
#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;
using redoubt::testing::fault_proxy;
using redoubt::testing::proxy_faults;

/// One connection's events have one order: connecting, then perhaps ready, then lost.
class event_order final : public event_sink {
 public:
  void on(event const& e) noexcept override {
    std::lock_guard const lock(mutex_);
    switch (e.kind) {
      case event_kind::connecting: step(state_ == state::none, state::trying); break;
      case event_kind::ready:
        step(state_ == state::trying, state::up);
        ++ready_;
        break;
      case event_kind::lost:
      case event_kind::retired:
        lost_ready_ += state_ == state::up ? 1 : 0;
        step(state_ != state::none, state::none);
        break;
      case event_kind::late_reply_discarded: ++late_; break;
      case event_kind::call_rejected: ++rejected_; break;
      default: break;
    }
  }
  void expect(client_snapshot const& s) const {
    std::lock_guard const lock(mutex_);
    EXPECT_EQ(wrong_, 0) << "events out of order";
    EXPECT_EQ(ready_, s.readied);
    EXPECT_EQ(lost_ready_, s.lost);
    // The one that `async_close` ended was not lost.
    EXPECT_EQ(lost_ready_ + (state_ == state::up ? 1 : 0), s.readied) << "every connection has ended once";
    EXPECT_EQ(late_, s.discarded_replies);
    EXPECT_EQ(rejected_, s.rejected + s.refused);
  }

 private:
  enum class state { none, trying, up };
  void step(bool right, state next) noexcept {
    wrong_ += right ? 0 : 1;
    state_ = next;
  }
  mutable std::mutex mutex_;
  state state_ = state::none;
  int wrong_ = 0;
  std::uint64_t ready_ = 0;
  std::uint64_t lost_ready_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t rejected_ = 0;
};

/// What the callers saw.
struct tally {
  std::uint64_t calls = 0;
  std::uint64_t answered = 0;
  std::uint64_t expired = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t rejected = 0;
  std::uint64_t failed = 0;
  std::uint64_t wrong = 0;
  std::uint64_t late = 0;             // ended long after its limit
  std::vector<std::string> unsent{};  // names of calls that ended with effect none

  void note(std::string const& name, result<reply> const& got) {
    if (got) {
      ++answered;
      if (got->as_string() != "value of " + name) ++wrong;
      return;
    }
    auto const& why = got.error();
    if (why.rejected) {
      ++rejected;
    } else if (why.code == errc::deadline_exceeded) {
      ++expired;
    } else if (why.code == errc::cancelled) {
      ++cancelled;
    } else {
      ++failed;
    }
    if (why.effect == effect::none) unsent.push_back(name);
  }
  void add(tally const& other) {
    calls += other.calls;
    answered += other.answered;
    expired += other.expired;
    cancelled += other.cancelled;
    rejected += other.rejected;
    failed += other.failed;
    wrong += other.wrong;
    late += other.late;
    unsent.insert(unsent.end(), other.unsent.begin(), other.unsent.end());
  }
  [[nodiscard]] std::uint64_t ended() const { return answered + expired + cancelled + rejected + failed; }
};

/// A caller with a thread and a context of its own: sixteen calls at a time, some of which it cancels.
tally call_until(client& redis, std::atomic<bool> const& stop, std::uint64_t seed) {
  constexpr std::size_t at_a_time = 16;
  tally sum;
  random_source random(seed);
  asio::io_context own;
  while (!stop) {
    std::vector<asio::cancellation_signal> signals(at_a_time);
    asio::steady_timer patience(own, std::chrono::microseconds(random.below(20'000)));
    for (std::size_t i = 0; i < at_a_time; ++i) {
      auto const name = std::to_string(seed) + ":" + std::to_string(sum.calls++);
      call_options options;
      if (random.chance(1, 2)) options.budget = std::chrono::microseconds(1000 + random.below(150'000));
      auto const limit = options.budget.value_or(150ms) + 2s + slack;
      redis.async_call(
          command("GET", name), options,
          asio::bind_cancellation_slot(
              signals[i].slot(),
              asio::bind_executor(own, [&sum, name, limit, start = steady::now()](result<reply> got) {
                if (steady::now() - start > limit) ++sum.late;
                sum.note(name, got);
              })));
    }
    patience.async_wait([&](boost::system::error_code) {
      for (std::size_t i = 0; i < at_a_time; i += 5) signals[i].emit(asio::cancellation_type::terminal);
    });
    own.restart();
    own.run();  // returns when all have ended
  }
  return sum;
}

/// Something new happens to the network every few milliseconds.
void disturb(fault_proxy& proxy, std::chrono::milliseconds time, std::uint64_t seed) {
  random_source random(seed);
  auto const end = steady::now() + time;
  while (steady::now() < end) {
    proxy_faults faults;
    auto& way = random.chance(1, 2) ? faults.to_server : faults.to_client;
    switch (random.below(12)) {
      case 0:
        way.delay = std::chrono::microseconds(random.below(30'000));
        way.jitter = 10ms;
        break;
      case 1:
        way.slice = 1 + random.below(64);
        way.slice_pause = std::chrono::microseconds(random.below(1000));
        break;
      case 2: way.bandwidth = 1000 + random.below(100'000); break;
      case 3: way.blackhole = true; break;
      case 4: faults.to_server.blackhole = faults.to_client.blackhole = true; break;
      case 5:
        way.cut_after = random.below(4000);
        way.cut_with_reset = random.chance(1, 2);
        break;
      case 6: faults.accept_delay = std::chrono::microseconds(random.below(200'000)); break;
      case 7:
        faults.refuse = true;
        proxy.reset_connections();
        break;
      case 8: proxy.reset_connections(); break;
      case 9: proxy.close_connections(); break;
      case 10: proxy.freeze_connections(); break;
      default: break;
    }
    proxy.set(faults);
    std::this_thread::sleep_for(std::chrono::microseconds(5000 + random.below(60'000)));
    if (!random.chance(1, 2)) continue;
    proxy.set({});
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(60'000)));
  }
  proxy.set({});
}

void expect_balance(client_snapshot const& s, tally const& sum) {
  EXPECT_EQ(sum.calls, sum.ended()) << "a call did not end, or ended twice";
  EXPECT_EQ(sum.wrong, 0U);
  EXPECT_EQ(sum.late, 0U);
  EXPECT_EQ(s.started + s.refused, sum.calls);
  EXPECT_EQ(s.started, s.answered + s.expired + s.cancelled + s.rejected + s.failed_calls);
  EXPECT_EQ(s.answered, sum.answered);
  EXPECT_EQ(s.expired, sum.expired);
  EXPECT_EQ(s.cancelled, sum.cancelled);
  EXPECT_EQ(s.rejected + s.refused, sum.rejected);
  EXPECT_EQ(s.failed_calls, sum.failed);
  EXPECT_EQ(s.in_flight, 0U);
  EXPECT_EQ(s.queued_bytes, 0U);
  EXPECT_EQ(s.waiting, 0U);
  EXPECT_EQ(s.owed, 0U);
}

void soak(std::chrono::milliseconds time, std::uint64_t seed, bool report) {
  scripted_server server(scripted_server::plain());
  fault_proxy proxy({.server_port = server.port(), .seed = seed});
  running_context context(2);
  event_order events;
  client_options options{.address = {.port = proxy.port()}};
  options.reconnect.stall_limit = 200ms;
  options.reconnect.ping_interval = 50ms;
  options.events = &events;
  client redis(context.io(), options);

  std::atomic<bool> stop = false;
  std::vector<tally> sums(8);
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    callers.emplace_back([&, i] { sums[i] = call_until(redis, stop, seed * 100 + i); });
  }
  disturb(proxy, time, seed);
  stop = true;
  for (auto& one : callers) one.join();
  tally sum;
  for (auto const& one : sums) sum.add(one);
  expect_balance(redis.snapshot(), sum);

  auto const back = first_success(redis, 10s);
  ASSERT_TRUE(back) << "the faults are over";
  redis.async_close(0s, asio::use_future).get();
  auto const end = redis.snapshot();
  events.expect(end);

  // What the server knows: each command at most once, and none that was said to have no effect.
  std::unordered_map<std::string, int> seen;
  for (auto const& command : server.log()) {
    if (is(command, "GET")) ++seen[command[1]];
  }
  for (auto const& [name, times] : seen) EXPECT_EQ(times, 1) << name;
  for (auto const& name : sum.unsent) EXPECT_FALSE(seen.contains(name)) << name << " had effect none";
  if (!report) return;
  std::cout << sum.calls << " calls: " << sum.answered << " answered, " << sum.expired << " expired, "
            << sum.cancelled << " cancelled, " << sum.rejected << " rejected, " << sum.failed
            << " failed with their connection; " << end.readied << " connections, " << end.discarded_replies
            << " late replies discarded, first success after " << ms(*back) << " ms\n";
}

std::chrono::seconds published_or(std::chrono::seconds usual) {
  auto const* text = std::getenv("REDOUBT_SOAK_SECONDS");
  return text != nullptr ? std::chrono::seconds(std::max(1, std::atoi(text))) : usual;
}

TEST(soak, C30_C61_C78_random_faults_leave_balanced_counters_and_no_memory_behind) {
  soak(300ms, 1, false);  // what is allocated once and kept
  auto const before = test::heap_in_use();
  soak(published_or(2s), 2, true);
  auto const after = test::heap_in_use();
  EXPECT_LE(after, before + 256 * 1024) << before << " bytes before";
}

}  // namespace
