// SPDX-License-Identifier: BSL-1.0
//
// How a connection ends: lost, retired, closed.
#include <redoubt/fsm/lifecycle.hpp>

#include <array>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "link_rig.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::duration;
using redoubt::errc;
using redoubt::lifecycle_options;
using redoubt::link_state;
using redoubt::time_point;
using test::kind;
using test::kinds;
using test::link_rig;

TEST(lifecycle, one_loss_is_met_by_an_attempt_at_once_if_somebody_waits) {
  link_rig r;
  r.make_ready();
  EXPECT_EQ(r.lost(true), (kinds{kind::drop, kind::resolve}));
  (void)r.resolved();
  (void)r.connected();
  (void)r.greeted();
  r.life.on_answer();
  EXPECT_EQ(r.lost(false), kinds{kind::drop});
  EXPECT_EQ(r.life.state(), link_state::idle);
  EXPECT_EQ(r.life.snapshot().lost, 2u);
}

// A server that greets and dies again and again is met like one that refuses: ever longer pauses.
TEST(lifecycle, C44_a_server_that_keeps_ending_connections_before_any_answer_makes_no_hot_loop) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    link_rig r({}, seed);
    int attempts = 0;
    auto const end = r.now + 5s;
    (void)r.demand();
    while (r.now < end) {
      switch (r.life.state()) {
        case link_state::resolving:
          ++attempts;
          (void)r.resolved();
          break;
        case link_state::connecting: (void)r.connected(); break;
        case link_state::handshaking: (void)r.greeted(); break;
        case link_state::ready: (void)r.lost(true); break;
        default:
          if (auto const no = r.life.rejection(r.now)) r.now += no->retry_after;
          (void)r.demand();
          break;
      }
      ASSERT_LT(attempts, 200) << "seed " << seed;
    }
    EXPECT_GE(attempts, 15) << "seed " << seed << ": it does keep trying";
  }
}

TEST(lifecycle, an_answer_makes_the_next_loss_the_first_one_again) {
  link_rig r;
  for (int i = 0; i < 20; ++i) {
    if (r.life.state() == link_state::idle) (void)r.demand();
    (void)r.resolved();
    (void)r.connected();
    (void)r.greeted();
    r.life.on_answer();
    EXPECT_EQ(r.lost(true), (kinds{kind::drop, kind::resolve})) << i;
  }
}

TEST(lifecycle, a_stall_is_no_proof_against_the_server) {
  link_rig r;
  (void)r.demand();
  for (int i = 0; i < 5; ++i) {
    (void)r.resolved();
    (void)r.connected();
    (void)r.greeted();
    EXPECT_EQ(r.lost(true, errc::connection_stalled), (kinds{kind::drop, kind::resolve})) << i;
    r.now += 1s;
  }
}

TEST(lifecycle, C47_retires_at_most_once_per_backoff_step) {
  link_rig r;
  r.make_ready();
  std::vector<duration> gaps;
  auto last = r.now;
  int retired = 0;
  auto const end = r.now + 10s;
  while (r.now < end) {
    if (r.life.should_retire(r.now)) {
      EXPECT_EQ(r.did(r.life.retire(true, r.now)), (kinds{kind::drop, kind::resolve}));
      if (retired++ > 0) gaps.push_back(r.now - last);
      last = r.now;
      (void)r.resolved();
      (void)r.connected();
      (void)r.greeted();
      EXPECT_FALSE(r.life.should_retire(r.now)) << "a target that is meant to be read-only";
    }
    r.now += 1ms;
  }
  ASSERT_GE(gaps.size(), 6u);
  EXPECT_EQ(gaps[0], 10ms);
  EXPECT_EQ(gaps[1], 20ms);
  EXPECT_EQ(gaps[2], 40ms);
  EXPECT_EQ(gaps.back(), 250ms);
  EXPECT_LE(retired, 10s / 250ms + 6);
  EXPECT_EQ(r.life.snapshot().retired, static_cast<std::uint64_t>(retired));
}

TEST(lifecycle, C47_retiring_starts_afresh_after_a_long_time) {
  link_rig r;
  r.make_ready();
  for (int i = 0; i < 8; ++i) {
    while (!r.life.should_retire(r.now)) r.now += 1ms;
    (void)r.life.retire(true, r.now);
    (void)r.resolved();
    (void)r.connected();
    (void)r.greeted();
  }
  r.now += 10s;
  ASSERT_TRUE(r.life.should_retire(r.now));
  r.now += 10ms;
  EXPECT_TRUE(r.life.should_retire(r.now)) << "the second step is the base again";
}

TEST(lifecycle, C47_only_a_ready_connection_retires) {
  link_rig r;
  EXPECT_FALSE(r.life.should_retire(r.now));
  EXPECT_EQ(r.did(r.life.retire(true, r.now)), kinds{});
  (void)r.demand();
  EXPECT_FALSE(r.life.should_retire(r.now));
  EXPECT_EQ(r.did(r.life.retire(true, r.now)), kinds{});
}

TEST(lifecycle, C80_closes_in_every_state_and_stays_closed) {
  std::array<std::function<void(link_rig&)>, 7> const ways{
      [](link_rig&) {},
      [](link_rig& r) { (void)r.demand(); },
      [](link_rig& r) {
        (void)r.demand();
        (void)r.resolved();
      },
      [](link_rig& r) {
        (void)r.demand();
        (void)r.resolved();
        (void)r.connected();
      },
      [](link_rig& r) { r.make_ready(); },
      [](link_rig& r) {
        (void)r.demand();
        (void)r.failed();
      },
      [](link_rig& r) {
        r.make_ready();
        (void)r.lost();
      },
  };
  for (auto const& way : ways) {
    link_rig r;
    way(r);
    auto const before = r.life.epoch();
    EXPECT_EQ(r.did(r.life.close()), (kinds{kind::drop, kind::fail_waiting}));
    EXPECT_EQ(r.life.state(), link_state::closed);
    EXPECT_GT(r.life.epoch(), before) << "what is under way is stale now";
    EXPECT_EQ(r.did(r.life.close()), kinds{}) << "twice";
    EXPECT_EQ(r.demand(), kinds{});
    EXPECT_EQ(r.on_time(true), kinds{});
    EXPECT_EQ(r.resolved(), kinds{});
    EXPECT_EQ(r.failed(), kinds{});
    EXPECT_EQ(r.connected(), kinds{});
    EXPECT_EQ(r.greeted(), kinds{});
    EXPECT_EQ(r.lost(true), kinds{});
    EXPECT_EQ(r.did(r.life.retire(true, r.now)), kinds{});
    EXPECT_FALSE(r.life.next_wakeup()) << "C82";
    auto const no = r.life.rejection(r.now + 1h);
    ASSERT_TRUE(no);
    EXPECT_EQ(no->code, errc::closed);
    EXPECT_TRUE(no->rejected);
  }
}

TEST(lifecycle, huge_limits_do_not_overflow) {
  lifecycle_options o;
  o.connect_timeout = o.stall_limit = duration::max();
  o.refused_pause = 1h;
  link_rig r(o);
  (void)r.demand();
  EXPECT_EQ(r.life.next_wakeup(), time_point::max());
  (void)r.resolved();
  (void)r.connected();
  EXPECT_EQ(r.life.next_wakeup(), time_point::max());
  EXPECT_EQ(r.on_time(true), kinds{});
}

}  // namespace
