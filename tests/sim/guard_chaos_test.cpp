// SPDX-License-Identifier: BSL-1.0
//
// Stacks under whatever can happen to them, in virtual time: operations that end well, badly, late, never, or
// inside their own start; callers that cancel or run out of time at any step; settings, sizes, advice and
// the passing of time between any two of these; guards that go away before their calls.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

#include <redoubt/core/random.hpp>
#include <redoubt/guard/adaptive_throttle.hpp>
#include <redoubt/guard/breaker.hpp>
#include <redoubt/guard/bulkhead_layer.hpp>
#include <redoubt/guard/hedge.hpp>
#include <redoubt/guard/retry.hpp>
#include <redoubt/guard/single_flight.hpp>
#include <redoubt/guard/stack.hpp>
#include <redoubt/guard/time_limit.hpp>
#include <redoubt/guard/token_bucket.hpp>

#include "unit/guard_rig.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace redoubt;
using redoubt::testing::world;

struct caller {
  int answers = 0;
  deadline by{};
  time_point at{};
  bool cancelled = false;
  asio::cancellation_signal stop{};
};

/// One run.
class chaos {
 public:
  explicit chaos(std::uint64_t seed) : random_(seed) {
    breaker::options o;
    o.settings.consecutive = 2;
    o.settings.open = {.floor = 5ms, .base = 10ms, .cap = 40ms};
    o.settings.trial_limit = 20ms;
    if (random_.chance(1, 2)) {
      o.settings.ratio = breaker_ratio{
          .failures = 0.3, .slow = 0.5, .slow_after = 10ms, .minimum_calls = 4, .window = 100ms};
    }
    if (random_.chance(1, 2)) o.settings.ramp = breaker_ramp{.start = 0.3, .length = 30ms};
    o.seed = seed;
    db_.emplace(o);
    slots_ = std::make_unique<bulkhead>(bulkhead::options{.slots = 2, .waiters = 3, .max_wait = 15ms});
    limit_.emplace(time_limit::options{.limit = 20ms});
    flights_ = std::make_unique<flights>(single_flight_options{.keys = 4, .followers = 6, .limit = 60ms});
  }

 private:
  using flights = single_flight<int, int>;
  using end = std::function<void(std::optional<result<int>>)>;  // nothing: dropped

  result<int> some_result() {
    if (random_.chance(2, 3)) return result<int>(1);
    auto const code = random_.chance(1, 2) ? errc::connection_lost : errc::remote_rejected;
    return result<int>(test::failed(code));
  }

  auto operation() {
    return [this](call_scope const&, auto done, int) {
      ++started_;
      if (random_.chance(1, 6)) return std::move(done)(some_result());
      if (drops_ && random_.chance(1, 20)) return;  // dropped at once
      auto kept = std::make_shared<decltype(done)>(std::move(done));
      pending_.push_back([kept](std::optional<result<int>> r) {
        if (r) std::move (*kept)(std::move(*r));
      });
    };
  }

  template <class Stack>
  void go(Stack const& s) {
    for (int step = 0; step < 120; ++step) {
      switch (random_.below(9)) {
        case 0:
        case 1:
        case 2: call(s); break;
        case 3: cancel(); break;
        case 4:
        case 5: end_one(); break;
        case 6: world_.run_for(duration(static_cast<duration::rep>(random_.below(12'000'000)))); break;
        case 7: world_.run_for(0ns); break;
        default: change(); break;
      }
      look();
    }
    if (random_.chance(1, 3)) flights_.reset();  // it may go before its calls
    if (random_.chance(1, 3)) limit_.reset();
    while (!pending_.empty()) end_one();
    world_.run_for(1s);
    while (!pending_.empty()) end_one();  // retries started some more
    world_.run_for(1s);
    settled();
  }

  template <class Stack>
  void call(Stack const& s) {
    if (!flights_) return;
    auto c = std::make_shared<caller>();
    callers_.push_back(c);
    if (random_.chance(1, 2)) c->by = deadline(world_.now() + 1us * static_cast<int>(random_.below(40'000)));
    s.async(asio::bind_cancellation_slot(c->stop.slot(),
                                         [this, c](result<int>) { ++c->answers, c->at = world_.now(); }),
            world_.get_executor(), c->by, static_cast<int>(random_.below(3)));
    ASSERT_EQ(c->answers, 0) << "never inside the call";
    if (random_.chance(1, 10)) {
      c->cancelled = true;
      c->stop.emit(asio::cancellation_type::terminal);
    }
  }

  void cancel() {
    if (callers_.empty()) return;
    auto& c = *callers_[random_.below(callers_.size())];
    if (c.answers > 0 || std::exchange(c.cancelled, true)) return;
    c.stop.emit(asio::cancellation_type::terminal);
  }

  void end_one() {
    if (pending_.empty()) return;
    auto const at = pending_.begin() + static_cast<std::ptrdiff_t>(random_.below(pending_.size()));
    auto const finish = std::move(*at);
    pending_.erase(at);
    if (drops_ && random_.chance(1, 15)) return;  // dropped
    finish(some_result());
  }

  void change() {
    switch (random_.below(4)) {
      case 0: {
        bulkhead_limits limits;
        limits.slots = 1 + static_cast<std::uint32_t>(random_.below(4));
        limits.waiters = static_cast<std::uint32_t>(random_.below(4));
        if (random_.chance(1, 2)) limits.shares.normal = 1;
        slots_->resize(limits);
        break;
      }
      case 1: {
        auto settings = db_->settings();
        settings.mode = static_cast<breaker_mode>(random_.below(4));
        settings.consecutive = 1 + static_cast<std::uint32_t>(random_.below(3));
        if (random_.chance(1, 2)) settings.ramp.reset();
        if (random_.chance(1, 2)) settings.ratio = breaker_ratio{.minimum_calls = 2, .window = 50ms};
        db_->configure(settings);
        break;
      }
      case 2:
        (void)db_->advise_open(world_.now() + 1us * static_cast<int>(random_.below(30'000)), world_.now());
        break;
      default: (void)db_->try_acquire(world_.now()); break;  // a permit that is given up at once
    }
  }

  void look() {
    auto const slots = slots_->snapshot();
    ASSERT_LE(slots.waiting, 3u);
    ASSERT_LE(slots.used, 4u);
    ASSERT_LE(flights_->snapshot().flights, 4u);
    for (auto const& c : callers_) ASSERT_LE(c->answers, 1);
  }

  void settled() {
    ASSERT_TRUE(pending_.empty());
    for (auto const& c : callers_) {
      ASSERT_EQ(c->answers, 1) << "every caller is answered once";
      if (c->by.is_set()) {
        ASSERT_LE(c->at, c->by.at()) << "and in time";
      }
    }
    EXPECT_EQ(slots_->snapshot().used, 0u);
    EXPECT_EQ(slots_->snapshot().waiting, 0u);
    if (limit_) {
      EXPECT_EQ(limit_->snapshot().orphans, 0u);
    }
    if (flights_) {
      auto const f = flights_->snapshot();
      EXPECT_EQ(f.flights + f.waiting + f.abandoned, 0u);
      EXPECT_EQ(f.led + f.joined, f.answered + f.expired + f.left);
    }
    // Not stuck: whatever state it is in, somebody is let through before long.
    auto settings = db_->settings();
    settings.mode = breaker_mode::normal;
    db_->configure(settings);
    bool let_through = false;
    for (int i = 0; i < 20 && !let_through; ++i) {
      world_.run_for(50ms);
      auto permit = db_->try_acquire(world_.now());
      let_through = permit.has_value();
      if (let_through) permit->record(result<int>(1), world_.now());
    }
    EXPECT_TRUE(let_through);
    auto const held = slots_->try_acquire();
    EXPECT_TRUE(held);
  }

 public:
  void run() {
    if (random_.chance(1, 2)) {
      auto const s = start_plain<int>(operation()) | through(*slots_) | through(*limit_) | through(*db_) |
                     total(50ms) | one_per_key(*flights_);
      go(s);
    } else if (random_.chance(1, 2)) {
      retry again({.retries = 2, .total = 50ms, .pause = {.base = 2ms, .cap = 8ms}}, 1);
      auto const s = start_plain<int>(operation()) | through(*slots_) | through(*limit_) | through(*db_) |
                     through(again, repeat::idempotent) | one_per_key(*flights_);
      go(s);
    } else {
      // Without a flight, which answers who is cancelled: each layer has to, and who drops a call answers
      // nobody.
      drops_ = false;
      token_bucket quota({.rate = {.limit = 2000, .per = 1s, .burst = 3}, .max_wait = 10ms});
      adaptive_throttle throttle({.ratio = {.window = 1s}, .seed = 1});
      hedge twice({.delay = 4ms, .ratio = 0.5});
      retry_budget budget({.ratio = 0.5});
      retry again({.retries = 2, .total = 50ms, .pause = {.base = 2ms, .cap = 8ms}}, budget, 1);
      auto const s = start_plain<int>(operation()) | through(*slots_) | through(quota) | through(*limit_) |
                     through(*db_) | through(throttle) | through(twice, idempotent) |
                     through(again, repeat::idempotent);
      if (random_.chance(1, 2)) {
        go(s);
      } else {
        go(s | total(50ms));
      }
      auto const h = twice.snapshot();
      EXPECT_EQ(h.attempts, h.ended);
      auto const r = again.snapshot();
      EXPECT_EQ(r.operations, r.succeeded + r.not_repeatable + r.none_left + r.no_time + r.no_budget);
    }
  }

 private:
  random_source random_;
  world world_;
  std::optional<breaker> db_;
  std::unique_ptr<bulkhead> slots_;
  std::optional<time_limit> limit_;
  std::unique_ptr<flights> flights_;
  std::vector<end> pending_;
  std::vector<std::shared_ptr<caller>> callers_;
  int started_ = 0;
  bool drops_ = true;
};

TEST(guard_chaos, C88_C96_C98_C100_every_caller_is_answered_once_in_time_and_nothing_stays_held) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    chaos(seed).run();
    if (HasFailure()) return;
  }
}

}  // namespace
