// SPDX-License-Identifier: BSL-1.0
//
// The write gate, the stall limit and the bound on tombstones.
#include <redoubt/fsm/call_queue.hpp>

#include <vector>

#include <gtest/gtest.h>

#include "queue_rig.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::effect;
using redoubt::phase;
using test::queue_rig;
using kind = redoubt::matched_reply::kind;
using tags = queue_rig::tags;

TEST(write_gate, closes_when_a_reply_is_overdue_and_opens_on_any_byte) {
  queue_rig r;
  r.ready();
  r.sent(1);
  r.advance(99ms);
  EXPECT_FALSE(r.q.gate_closed(r.now));
  r.advance(1ms);
  EXPECT_TRUE(r.q.gate_closed(r.now));
  r.submit(2);
  EXPECT_EQ(r.take(), tags{});
  r.advance(20ms);
  EXPECT_EQ(r.take(), tags{});
  r.bytes();  // not even a whole reply
  EXPECT_FALSE(r.q.gate_closed(r.now));
  EXPECT_EQ(r.take(), tags{2});
}

TEST(write_gate, calls_made_during_a_pause_end_without_effect) {
  queue_rig r;
  r.ready();
  r.sent(1);
  r.advance(100ms);
  EXPECT_EQ(r.ended_tags(), tags{1});
  std::uint64_t tag = 2;
  for (int i = 0; i < 100; ++i) {
    r.submit(tag++);
    EXPECT_EQ(r.take(), tags{});
    r.advance(5ms);
  }
  r.advance(200ms);
  EXPECT_EQ(r.ended.size(), 100u);
  for (auto const& e : r.ended) EXPECT_EQ(e.effect, effect::none);
  EXPECT_EQ(r.reply().what, kind::discarded);
  EXPECT_EQ(r.reply().what, kind::unexpected) << "one command reached the server, not more";
}

TEST(write_gate, stays_closed_after_the_caller_has_gone) {
  queue_rig r;
  r.ready();
  auto const id = r.sent(1);
  r.advance(50ms);
  ASSERT_TRUE(r.cancel(id));
  EXPECT_FALSE(r.q.gate_closed(r.now)) << "a caller who leaves early is no sign of a pause";
  r.advance(50ms);
  EXPECT_TRUE(r.q.gate_closed(r.now)) << "but the server owes that answer for 100 ms now";
}

TEST(write_gate, counts_from_the_last_byte_not_from_the_write) {
  queue_rig r;
  r.ready();
  r.sent(1);
  r.advance(60ms);
  r.bytes();
  r.advance(60ms);  // the call has expired, but the server spoke 60 ms ago
  EXPECT_EQ(r.ended_tags(), tags{1});
  EXPECT_FALSE(r.q.gate_closed(r.now));
  r.advance(40ms);
  EXPECT_TRUE(r.q.gate_closed(r.now));
}

TEST(write_gate, a_short_own_budget_closes_nothing) {
  queue_rig r;
  r.ready();
  r.submit(1, 10, 1, 5ms, true);
  (void)r.take();
  r.written(10);
  r.advance(5ms);
  EXPECT_EQ(r.ended_tags(), tags{1});
  EXPECT_FALSE(r.q.gate_closed(r.now));
  r.submit(2);
  EXPECT_EQ(r.take(), tags{2});
}

TEST(write_gate, a_long_own_budget_is_waited_for_unless_somebody_behind_it_is_overdue) {
  queue_rig r;
  r.ready();
  r.submit(1, 10, 1, 3s, true);
  (void)r.take();
  r.written(10);
  r.advance(500ms);
  EXPECT_FALSE(r.q.gate_closed(r.now)) << "its caller said that it may take that long";
  r.sent(2);
  r.advance(99ms);
  EXPECT_FALSE(r.q.gate_closed(r.now));
  r.advance(1ms);
  EXPECT_EQ(r.ended_tags(), tags{2});
  EXPECT_TRUE(r.q.gate_closed(r.now));
  EXPECT_EQ(r.reply().tag, 1u);
  EXPECT_FALSE(r.q.gate_closed(r.now));
}

TEST(write_gate, a_fresh_connection_has_an_open_one) {
  queue_rig r;
  r.ready();
  r.sent(1);
  r.advance(100ms);
  EXPECT_TRUE(r.q.gate_closed(r.now));
  r.lose();
  EXPECT_FALSE(r.q.gate_closed(r.now));
  r.ready();
  r.submit(2);
  EXPECT_EQ(r.take(), tags{2});
}

TEST(write_gate, a_write_that_takes_long_counts_from_its_end) {
  queue_rig r;
  r.ready();
  r.submit(1, 1000, 1, 1s, true);
  (void)r.take();
  r.advance(90ms);
  r.written(1000);
  r.advance(90ms);
  EXPECT_FALSE(r.q.gate_closed(r.now)) << "the server has had the whole command for 90 ms only";
}

TEST(stall_limit, is_the_longest_silence_while_a_reply_is_owed) {
  queue_rig r;
  r.ready();
  r.sent(1);
  r.advance(999ms);
  EXPECT_FALSE(r.q.stalled(r.now));
  EXPECT_EQ(r.q.next_wakeup(), r.now + 1ms);
  r.advance(1ms);
  EXPECT_TRUE(r.q.stalled(r.now));
  r.bytes();
  EXPECT_FALSE(r.q.stalled(r.now));
}

TEST(stall_limit, C27_a_connection_on_which_bytes_arrive_is_not_stalled) {
  queue_rig r;
  r.ready();
  r.sent(1);
  for (int i = 0; i < 50; ++i) {
    r.advance(500ms);
    ASSERT_FALSE(r.q.stalled(r.now));
    r.bytes();
  }
}

TEST(stall_limit, C27_an_idle_connection_is_never_stalled) {
  queue_rig r;
  r.ready();
  r.sent(1);
  (void)r.reply();
  r.advance(60s);
  EXPECT_FALSE(r.q.stalled(r.now));
  EXPECT_FALSE(r.q.gate_closed(r.now));
  EXPECT_FALSE(r.q.next_wakeup());
}

TEST(stall_limit, waits_for_a_call_that_may_take_longer) {
  queue_rig r;
  r.ready();
  r.submit(1, 10, 1, 5s, true);
  (void)r.take();
  r.written(10);
  r.advance(4999ms);
  EXPECT_FALSE(r.q.stalled(r.now));
  r.advance(1ms);
  EXPECT_TRUE(r.q.stalled(r.now));
}

TEST(stall_limit, covers_a_write_that_never_ends) {
  queue_rig r;
  r.ready();
  auto const id = r.submit(1, 1000);
  (void)r.take();
  r.written(1);
  ASSERT_TRUE(r.cancel(id));
  r.advance(999ms);
  EXPECT_FALSE(r.q.stalled(r.now));
  r.advance(1ms);
  EXPECT_TRUE(r.q.stalled(r.now));
}

TEST(stall_limit, covers_a_peer_that_answers_what_it_does_not_read) {
  queue_rig r;
  r.ready();
  r.submit(1, 1000);
  (void)r.take();
  r.written(1);
  EXPECT_EQ(r.reply().tag, 1u);
  ASSERT_TRUE(r.q.settled());
  r.advance(500ms);
  r.written(1);  // it still takes bytes: the limit counts anew
  r.submit(2);
  EXPECT_EQ(r.take(), tags{}) << "the rest of the first is still being written";
  r.advance(999ms);
  EXPECT_FALSE(r.q.stalled(r.now));
  ASSERT_TRUE(r.q.next_wakeup());
  EXPECT_LE(*r.q.next_wakeup(), r.now + 1ms);
  r.advance(1ms);
  EXPECT_TRUE(r.q.stalled(r.now));
}

TEST(stall_limit, is_not_prolonged_by_a_call_that_was_given_up) {
  queue_rig r;
  r.ready();
  auto const id = r.submit(1, 10, 1, 1h, true);
  (void)r.take();
  r.written(10);
  r.advance(200ms);
  EXPECT_FALSE(r.q.gate_closed(r.now)) << "its caller waits for an hour";
  ASSERT_TRUE(r.cancel(id));
  EXPECT_TRUE(r.q.gate_closed(r.now)) << "nobody does any more";
  r.advance(799ms);
  EXPECT_FALSE(r.q.stalled(r.now));
  r.advance(1ms);
  EXPECT_TRUE(r.q.stalled(r.now));
}

TEST(tombstones, are_bounded) {
  queue_rig r({.tombstones = 3});
  r.ready();
  std::vector<redoubt::call_id> ids;
  for (std::uint64_t tag = 1; tag <= 5; ++tag) ids.push_back(r.sent(tag));
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(r.cancel(ids[i]));
  EXPECT_FALSE(r.q.stalled(r.now));
  ASSERT_TRUE(r.cancel(ids[3]));
  EXPECT_TRUE(r.q.stalled(r.now));
  EXPECT_EQ(r.q.snapshot().tombstones, 4u);
  EXPECT_EQ(r.reply().what, kind::discarded);
  EXPECT_FALSE(r.q.stalled(r.now));
}

}  // namespace
