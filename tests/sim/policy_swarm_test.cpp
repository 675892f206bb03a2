// SPDX-License-Identifier: BSL-1.0
//
// The route policies over the real client under random faults. What must hold whatever happens: no route
// waits longer than its computed worst case, no more loads at a time than slots, no limiter or admission
// grants more than it may, every counter balances.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

#include <redoubt/client.hpp>
#include <redoubt/policy/admission.hpp>
#include <redoubt/policy/cache_aside.hpp>
#include <redoubt/policy/rate_limiter.hpp>
#include <redoubt/policy/write_probe.hpp>
#include <redoubt/testing/world.hpp>

namespace {

using namespace redoubt;
using namespace std::chrono_literals;

struct totals {
  std::uint64_t hash = 0;
  std::uint64_t routes = 0;
  std::uint64_t degraded = 0;
  std::uint64_t busy = 0;
  std::uint64_t unavailable = 0;
  std::uint64_t granted = 0;
};

class shop_run {
 public:
  explicit shop_run(std::uint64_t seed)
      : world_(seed),
        random_(seed * 31 + 7),
        redis_(world_.get_executor(), {.url = "redis://redis:6379", .key_prefix = "shop:"}),
        slots_({.name = "db", .slots = 3, .waiters = 8}),
        catalog_(redis_, [this](std::string const& key, deadline) { return load(key); },
                 {.key = "price:", .ttl = 60s, .load_timeout = 300ms, .slots = &slots_, .seed = seed}),
        login_(redis_, {.key = "login:", .limit = 5, .window = 10min}),
        payment_(redis_, {.key = "pay:", .hold = 10min, .seed = seed}),
        probe_(redis_, {.key = "health:write"}) {}

  totals go() {
    world_.network() = redoubt::testing::draw_faults(random_);
    for (int i = 0; i < 60; ++i) {
      world_.at(world_.now() + some(2'000ms), [this] { start_one(); });
    }
    auto& redis = world_.redis();
    if (random_.chance(1, 2)) {
      auto const t = world_.now() + some(2'000ms);
      world_.at(t, [&redis] { redis.pause(); });
      world_.at(t + some(1'000ms), [&redis] { redis.resume(); });
    }
    if (random_.chance(1, 3)) {
      world_.at(world_.now() + some(2'000ms), [&redis] { redis.fill_memory(); });
      world_.at(world_.now() + 2'500ms, [&redis] { redis.free_memory(); });
    }
    if (random_.chance(1, 3)) world_.at(world_.now() + some(2'000ms), [&redis] { redis.flush_scripts(); });
    world_.at(world_.now() + 4s, [] {});
    EXPECT_TRUE(world_.run_until([this] { return started_ == 60 && running_ == 0 && loads_ == 0; }, 20s))
        << "routes that never end";
    check_balance();
    out_.hash = world_.trace_hash();
    out_.routes = static_cast<std::uint64_t>(started_);
    return out_;
  }

 private:
  duration some(duration most) {
    return duration(static_cast<duration::rep>(random_.below(static_cast<std::uint64_t>(most.count()))));
  }

  asio::awaitable<std::string> load(std::string key) {
    ++loads_;
    EXPECT_LE(loads_, 3) << "more loads at a time than slots";
    // A loader that ignores cancellation and is sometimes slower than its limit.
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    timer t(world_.get_executor());
    boost::system::error_code ignored;
    co_await t.async_wait_until(world_.now() + some(random_.chance(1, 4) ? duration(700ms) : duration(20ms)),
                                asio::redirect_error(asio::use_awaitable, ignored));
    --loads_;
    if (random_.chance(1, 10)) throw std::runtime_error("no such row");
    co_return "value-of-" + key;
  }

  void start_one() {
    ++started_;
    ++running_;
    auto const start = world_.now();
    auto const id = std::to_string(random_.below(3));
    auto const ended = [this, start](duration worst, char const* route) {
      --running_;
      EXPECT_LE(world_.now() - start, worst + 3ms) << route << " took longer than its worst case";
    };
    switch (random_.below(4)) {
      case 0:
        catalog_.get("sku-" + id, {}, [this, ended, id](outcome<std::string> o) {
          ended(catalog_.worst_case(), "catalog");
          if (o.ok()) {
            EXPECT_EQ(o.value(), "value-of-sku-" + id);
          }
          out_.degraded += o.degraded();
          out_.busy += o.busy();
        });
        break;
      case 1:
        login_.admit(id, {}, [this, ended, id](decision<fail_closed> d) {
          ended(login_.worst_case(), "login");
          if (d.verdict() == verdict::admitted) {
            EXPECT_LE(++logins_[id], 5) << "a limiter granted more than its limit";
          }
          out_.granted += d.verdict() == verdict::admitted;
          out_.unavailable += d.verdict() == verdict::unavailable;
        });
        break;
      case 2:
        payment_.enter(id, {}, [this, ended, id](ticket<fail_closed> t) {
          ended(payment_.worst_case(), "payment");
          if (t.verdict() == verdict::admitted) {
            EXPECT_LE(++payments_[id], 1) << "two were admitted for one id";
          }
          out_.granted += t.verdict() == verdict::admitted;
          out_.unavailable += t.verdict() == verdict::unavailable;
        });
        break;
      default: probe_.check({}, [this, ended](bool) { ended(probe_.worst_case(), "probe"); }); break;
    }
  }

  void check_balance() {
    auto const c = catalog_.snapshot();
    EXPECT_EQ(c.requests, c.cached + c.loaded + c.refused + c.failed + c.cancelled);
    auto const l = login_.snapshot();
    EXPECT_EQ(l.requests, l.admitted + l.degraded + l.refused + l.unavailable + l.errors);
    auto const p = payment_.snapshot();
    EXPECT_EQ(p.requests, p.admitted + p.degraded + p.refused + p.unavailable + p.errors);
    auto const s = slots_.snapshot();
    EXPECT_EQ(s.used, 0u) << "a slot was not given back";
    EXPECT_EQ(s.waiting, 0u);
    EXPECT_EQ(redis_.snapshot().in_flight, 0u);
  }

  redoubt::testing::world world_;
  random_source random_;
  client redis_;
  bulkhead slots_;
  cache_aside<std::string, std::string> catalog_;
  rate_limiter<fixed_window, fail_closed> login_;
  admission<fail_closed> payment_;
  write_probe<> probe_;
  int started_ = 0;
  int running_ = 0;
  int loads_ = 0;
  std::map<std::string, int> logins_;
  std::map<std::string, int> payments_;
  totals out_;
};

TEST(policy_swarm, no_policy_exceeds_its_promise_in_300_runs) {
  totals all;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto const o = std::make_unique<shop_run>(seed)->go();
    if (HasFailure()) return;
    all.routes += o.routes;
    all.degraded += o.degraded;
    all.busy += o.busy;
    all.unavailable += o.unavailable;
    all.granted += o.granted;
  }
  std::cout << all.routes << " routes: " << all.granted << " granted, " << all.unavailable << " unavailable, "
            << all.degraded << " degraded, " << all.busy << " busy\n";
  EXPECT_GT(all.degraded, 100u);
  EXPECT_GT(all.unavailable, 100u);
  EXPECT_GT(all.granted, 100u);
  EXPECT_GT(all.busy, 10u);
}

TEST(policy_swarm, the_same_seed_gives_the_same_trace) {
  for (std::uint64_t seed : {5u, 50u, 500u}) {
    EXPECT_EQ(std::make_unique<shop_run>(seed)->go().hash, std::make_unique<shop_run>(seed)->go().hash);
  }
}

}  // namespace
