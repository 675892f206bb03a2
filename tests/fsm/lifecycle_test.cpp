// SPDX-License-Identifier: BSL-1.0
//
// How a connection comes to be ready, or does not. lifecycle_loss_test.cpp has what happens afterwards,
// lifecycle_explore_test.cpp tries every short sequence of inputs.
#include <redoubt/fsm/lifecycle.hpp>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "link_rig.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::duration;
using redoubt::errc;
using redoubt::lifecycle_options;
using redoubt::link_state;
using redoubt::phase;
using test::kind;
using test::kinds;
using test::kinds_of;
using test::link_rig;
using test::why;

TEST(lifecycle, goes_from_demand_to_ready) {
  link_rig r;
  EXPECT_EQ(r.life.state(), link_state::idle);
  EXPECT_FALSE(r.life.next_wakeup()) << "an unused client does nothing at all";
  EXPECT_EQ(r.demand(), kinds{kind::resolve});
  EXPECT_EQ(r.life.waiting_phase(), phase::resolve);
  EXPECT_EQ(r.demand(), kinds{}) << "one attempt serves all calls";
  EXPECT_EQ(r.resolved(), kinds{kind::connect});
  EXPECT_EQ(r.life.waiting_phase(), phase::connect);
  EXPECT_EQ(r.connected(), kinds{kind::greet});
  EXPECT_EQ(r.life.waiting_phase(), phase::handshake);
  EXPECT_EQ(r.greeted(), kinds{kind::open});
  EXPECT_EQ(r.life.waiting_phase(), phase::queue);
  auto const s = r.life.snapshot();
  EXPECT_EQ(s.attempts, 1u);
  EXPECT_EQ(s.readied, 1u);
  EXPECT_EQ(s.failed, 0u);
}

TEST(lifecycle, C22_no_timer_is_left_once_it_is_ready) {
  link_rig r;
  r.make_ready();
  EXPECT_FALSE(r.life.next_wakeup());
  r.now += 1h;
  EXPECT_EQ(r.on_time(true), kinds{});
  EXPECT_EQ(r.life.state(), link_state::ready);
}

TEST(lifecycle, C23_a_refused_connection_ends_the_waiting_calls_at_once) {
  link_rig r;
  (void)r.demand();
  (void)r.resolved();
  EXPECT_EQ(r.failed(), (kinds{kind::drop, kind::fail_waiting}));
  EXPECT_EQ(r.life.state(), link_state::backing_off);
  EXPECT_EQ(r.life.cause().code, errc::connection_refused);
  EXPECT_EQ(r.life.cause().phase, phase::connect);
}

TEST(lifecycle, rejects_while_it_backs_off_and_says_how_long) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    link_rig r({}, seed);
    (void)r.demand();
    (void)r.failed(errc::resolve_failed);
    auto const no = r.life.rejection(r.now);
    if (!no) continue;  // the pause may be zero
    EXPECT_TRUE(no->rejected);
    EXPECT_EQ(no->code, errc::resolve_failed);
    EXPECT_EQ(no->phase, phase::resolve);
    EXPECT_EQ(no->effect, redoubt::effect::none);
    EXPECT_EQ(no->group(), redoubt::failure_class::saturated);
    EXPECT_GT(no->retry_after, 0ns);
    EXPECT_LE(no->retry_after, 10ms);
    EXPECT_EQ(r.demand(), kinds{});
    r.now += no->retry_after;
    EXPECT_FALSE(r.life.rejection(r.now));
    EXPECT_EQ(r.demand(), kinds{kind::resolve}) << "exactly when it said";
  }
}

TEST(lifecycle, C44_pauses_are_jittered_grow_and_stay_within_the_cap) {
  duration longest{};
  std::vector<duration> first;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    link_rig r({}, seed);
    for (int n = 0; n < 60; ++n) {
      ASSERT_EQ(r.demand(), kinds{kind::resolve});
      (void)r.resolved();
      (void)r.failed();
      auto const no = r.life.rejection(r.now);
      auto const pause = no ? no->retry_after : 0ns;
      ASSERT_GE(pause, 0ns);
      ASSERT_LE(pause, std::min<duration>(250ms, 10ms * (1 << std::min(n, 6))));
      longest = std::max(longest, pause);
      if (n == 0) first.push_back(pause);
      r.now += pause;
    }
  }
  EXPECT_GT(longest, 240ms);
  std::sort(first.begin(), first.end());
  EXPECT_GT(std::unique(first.begin(), first.end()) - first.begin(), 90)
      << "not all clients come back together";
}

TEST(lifecycle, results_of_an_older_epoch_are_ignored) {
  link_rig r;
  (void)r.demand();
  auto const old = r.life.epoch();
  (void)r.failed();
  r.now += 10ms;
  (void)r.demand();
  auto const state = r.life.state();
  EXPECT_TRUE(r.life.on_resolved(old, r.now).empty());
  EXPECT_TRUE(r.life.on_attempt_failed(old, why(errc::connect_failed), r.now).empty());
  EXPECT_TRUE(r.life.on_connected(old, r.now).empty());
  EXPECT_TRUE(r.life.on_secured(old, r.now).empty());
  EXPECT_TRUE(r.life.on_greeted(old, r.now).empty());
  EXPECT_TRUE(r.life.on_refused(old, why(errc::server_error), r.now).empty());
  EXPECT_TRUE(r.life.on_lost(old, why(errc::connection_lost), true, r.now).empty());
  EXPECT_EQ(r.life.state(), state);
}

TEST(lifecycle, results_that_do_not_belong_to_the_state_are_ignored) {
  link_rig r;
  (void)r.demand();
  EXPECT_EQ(r.connected(), kinds{}) << "while resolving";
  EXPECT_EQ(r.greeted(), kinds{});
  EXPECT_EQ(r.lost(), kinds{});
  (void)r.resolved();
  EXPECT_EQ(r.resolved(), kinds{}) << "twice";
  EXPECT_EQ(r.greeted(), kinds{});
  (void)r.connected();
  EXPECT_EQ(r.failed(), kinds{}) << "the connection stands already";
  (void)r.greeted();
  EXPECT_EQ(r.greeted(), kinds{}) << "twice";
  EXPECT_EQ(r.did(r.life.on_refused(r.life.epoch(), why(errc::server_error), r.now)), kinds{});
  EXPECT_EQ(r.life.state(), link_state::ready);
}

TEST(lifecycle, C12_connecting_has_one_limit_for_look_up_and_connect) {
  link_rig r;
  (void)r.demand();
  r.now += 60ms;
  (void)r.resolved();
  EXPECT_EQ(r.life.next_wakeup(), r.now + 40ms);
  r.now += 39ms;
  EXPECT_EQ(r.on_time(true), kinds{});
  r.now += 1ms;
  EXPECT_EQ(r.on_time(true), (kinds{kind::drop, kind::fail_waiting}));
  EXPECT_EQ(r.life.cause().code, errc::connect_timeout);
  EXPECT_EQ(r.life.cause().phase, phase::connect);
}

TEST(lifecycle, C15_a_look_up_that_hangs_ends_at_the_limit) {
  link_rig r;
  (void)r.demand();
  r.now += 100ms;
  EXPECT_EQ(r.on_time(true), (kinds{kind::drop, kind::fail_waiting}));
  EXPECT_EQ(r.life.cause().phase, phase::resolve);
}

TEST(lifecycle, C50_the_addresses_have_what_the_look_up_has_left_of_the_time) {
  link_rig r;
  (void)r.demand();
  auto const begun = r.now;
  r.now += 60ms;
  auto const actions = r.life.on_resolved(r.life.epoch(), r.now);
  ASSERT_EQ(kinds_of(actions), kinds{kind::connect});
  EXPECT_EQ(actions.begin()->until, begun + 100ms);
}

TEST(lifecycle, C19_the_tls_handshake_comes_before_the_other_and_has_a_limit) {
  link_rig r({.stall_limit = 700ms, .secure = true});
  (void)r.demand();
  (void)r.resolved();
  EXPECT_EQ(r.connected(), kinds{kind::secure});
  EXPECT_EQ(r.life.state(), link_state::securing);
  EXPECT_EQ(r.life.waiting_phase(), phase::tls);
  EXPECT_EQ(r.life.next_wakeup(), r.now + 700ms);
  EXPECT_EQ(r.greeted(), kinds{}) << "not yet";
  EXPECT_EQ(r.connected(), kinds{}) << "twice";
  r.now += 100ms;
  EXPECT_EQ(r.secured(), kinds{kind::greet});
  EXPECT_EQ(r.life.waiting_phase(), phase::handshake);
  EXPECT_EQ(r.secured(), kinds{}) << "twice";
  EXPECT_EQ(r.greeted(), kinds{kind::open});
  EXPECT_EQ(r.life.snapshot().readied, 1u);
}

TEST(lifecycle, C19_a_silent_tls_handshake_is_parked_and_then_tried_again) {
  link_rig r({.stall_limit = 700ms, .secure = true});
  (void)r.demand();
  (void)r.resolved();
  (void)r.connected();
  r.now += 700ms;
  EXPECT_EQ(r.on_time(true), (kinds{kind::drop, kind::resolve}));
  EXPECT_EQ(r.life.cause().code, errc::connection_stalled);
  EXPECT_EQ(r.life.cause().phase, phase::tls);
}

TEST(lifecycle, C74_a_certificate_that_is_not_trusted_pauses_like_a_wrong_password) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (bool const at_once : {true, false}) {  // TLS 1.3: our certificate is judged after its handshake
      link_rig r({.secure = true}, seed);
      (void)r.demand();
      (void)r.resolved();
      (void)r.connected();
      if (at_once) {
        EXPECT_EQ(r.failed(errc::tls_untrusted), (kinds{kind::drop, kind::fail_waiting}));
      } else {
        (void)r.secured();
        EXPECT_EQ(r.did(r.life.on_refused(r.life.epoch(), why(errc::tls_untrusted), r.now)),
                  (kinds{kind::drop, kind::fail_waiting}));
      }
      auto const no = r.life.rejection(r.now);
      ASSERT_TRUE(no);
      EXPECT_EQ(no->phase, phase::tls);
      EXPECT_EQ(no->group(), redoubt::failure_class::misconfigured);
      EXPECT_GE(no->retry_after, 500ms);
      EXPECT_LE(no->retry_after, 1000ms);
      EXPECT_EQ(r.life.snapshot().failed, 1u);
    }
  }
}

TEST(lifecycle, a_peer_that_does_not_speak_tls_is_met_like_one_that_refuses) {
  link_rig r({.secure = true});
  (void)r.demand();
  (void)r.resolved();
  (void)r.connected();
  EXPECT_EQ(r.failed(errc::tls_failed), (kinds{kind::drop, kind::fail_waiting}));
  EXPECT_EQ(r.life.cause().phase, phase::tls);
  auto const no = r.life.rejection(r.now);
  EXPECT_TRUE(!no || no->retry_after <= 10ms);
}

TEST(lifecycle, C49_every_attempt_resolves_again) {
  link_rig r;
  for (int i = 0; i < 5; ++i) {
    r.now += 1s;
    EXPECT_EQ(r.demand(), kinds{kind::resolve});
    (void)r.resolved();
    (void)r.connected();
    (void)r.greeted();
    r.life.on_answer();
    EXPECT_EQ(r.lost(false), kinds{kind::drop});
  }
}

TEST(lifecycle, a_silent_handshake_is_parked_up_to_the_stall_limit_and_then_made_anew) {
  link_rig r;
  (void)r.demand();
  (void)r.resolved();
  (void)r.connected();
  r.now += 999ms;
  EXPECT_EQ(r.on_time(true), kinds{}) << "silent is not refused";
  EXPECT_FALSE(r.life.rejection(r.now)) << "calls may wait for the first byte";
  r.now += 1ms;
  EXPECT_EQ(r.on_time(true), (kinds{kind::drop, kind::resolve}));
  EXPECT_EQ(r.life.cause().code, errc::connection_stalled);
  (void)r.resolved();
  (void)r.connected();
  r.now += 900ms;
  EXPECT_EQ(r.greeted(), kinds{kind::open}) << "the first byte after the pause makes it ready";
}

TEST(lifecycle, a_parked_handshake_that_nobody_waits_for_is_not_made_anew) {
  link_rig r;
  (void)r.demand();
  (void)r.resolved();
  (void)r.connected();
  r.now += 1s;
  EXPECT_EQ(r.on_time(false), kinds{kind::drop});
  EXPECT_EQ(r.life.state(), link_state::idle);
  EXPECT_FALSE(r.life.next_wakeup());
}

TEST(lifecycle, C40_a_refused_handshake_pauses_long) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    link_rig r({}, seed);
    int attempts = 0;
    auto const end = r.now + 5s;
    while (r.now < end) {
      if (r.demand().empty()) {
        auto const no = r.life.rejection(r.now);
        ASSERT_TRUE(no);
        EXPECT_GE(no->retry_after, 500ms);
        EXPECT_LE(no->retry_after, 1s);
        r.now += no->retry_after;
        continue;
      }
      ++attempts;
      (void)r.resolved();
      (void)r.connected();
      auto refusal = why(errc::server_error);
      refusal.server = redoubt::server_errc::wrongpass;
      EXPECT_EQ(r.did(r.life.on_refused(r.life.epoch(), refusal, r.now)),
                (kinds{kind::drop, kind::fail_waiting}));
      EXPECT_EQ(r.life.cause().phase, phase::handshake);
    }
    EXPECT_LE(attempts, 12);
  }
}

TEST(lifecycle, a_connection_that_ends_in_the_handshake_counts_as_failed) {
  link_rig r;
  (void)r.demand();
  (void)r.resolved();
  (void)r.connected();
  EXPECT_EQ(r.lost(true), (kinds{kind::drop, kind::fail_waiting}));
  EXPECT_EQ(r.life.cause().phase, phase::handshake);
  EXPECT_EQ(r.life.snapshot().failed, 1u);
  EXPECT_EQ(r.life.snapshot().lost, 0u);
}

}  // namespace
