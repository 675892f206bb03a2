// SPDX-License-Identifier: BSL-1.0
//
// The call queue, one rule at a time. call_queue_gate_test.cpp has the write gate and the stall limit,
// call_queue_explore_test.cpp tries every short sequence of inputs.
#include <redoubt/fsm/call_queue.hpp>

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "queue_rig.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::call_queue_options;
using redoubt::effect;
using redoubt::phase;
using test::queue_rig;
using kind = redoubt::matched_reply::kind;
using tags = queue_rig::tags;

TEST(call_queue, nothing_is_staged_before_the_connection_is_ready) {
  queue_rig r;
  r.submit(1);
  EXPECT_EQ(r.take(), tags{});
  r.ready();
  EXPECT_EQ(r.take(), tags{1});
}

TEST(call_queue, a_batch_is_in_order_and_within_its_bytes_but_never_empty_for_size) {
  queue_rig r;
  r.ready();
  r.submit(1, 1000);
  r.submit(2, 10);
  r.submit(3, 10);
  r.submit(4, 10);
  EXPECT_EQ(r.take(20), tags{1});
  r.written(1000);
  EXPECT_EQ(r.take(20), (tags{2, 3}));
  EXPECT_EQ(r.take(20), tags{}) << "a batch is being written";
  r.written(20);
  EXPECT_EQ(r.take(20), tags{4});
}

TEST(call_queue, C32_a_call_that_expires_while_waiting_is_never_staged) {
  queue_rig r;
  r.submit(1, 10, 1, 50ms);
  r.submit(2, 10, 1, 90ms);
  r.advance(49ms);
  EXPECT_TRUE(r.ended.empty());
  r.advance(1ms);
  ASSERT_EQ(r.ended.size(), 1u);
  EXPECT_EQ(r.ended[0].tag, 1u);
  EXPECT_EQ(r.ended[0].effect, effect::none);
  EXPECT_EQ(r.ended[0].phase, phase::queue);
  r.ready();
  EXPECT_EQ(r.take(), tags{2});
  r.written(10);
  EXPECT_EQ(r.reply().tag, 2u);
  EXPECT_EQ(r.reply().what, kind::unexpected) << "nothing else was ever sent";
}

TEST(call_queue, C32_a_late_timer_does_not_let_an_expired_call_out) {
  queue_rig r;
  r.submit(1, 10, 1, 50ms);
  r.submit(2, 10, 1, 90ms);
  r.now += 60ms;  // a busy thread: the timer has not been served yet
  r.ready();
  EXPECT_EQ(r.take(), tags{2});
  r.advance(1ms);
  ASSERT_EQ(r.ended.size(), 1u);
  EXPECT_EQ(r.ended[0].tag, 1u);
  EXPECT_EQ(r.ended[0].effect, effect::none);
}

TEST(call_queue, C32_the_limit_of_the_attempt_counts_for_a_late_timer_too) {
  queue_rig r;
  r.ready();
  r.submit(1, 10, 1, 500ms);  // attempt_timeout is 100 ms
  r.now += 120ms;
  EXPECT_EQ(r.take(), tags{});
  r.advance(1ms);
  ASSERT_EQ(r.ended.size(), 1u);
  EXPECT_EQ(r.ended[0].effect, effect::none);
}

TEST(call_queue, C10_a_call_that_expires_after_staging_leaves_a_tombstone_with_effect_unknown) {
  queue_rig r;
  r.ready();
  r.sent(1);
  r.advance(100ms);
  ASSERT_EQ(r.ended.size(), 1u);
  EXPECT_EQ(r.ended[0].effect, effect::unknown);
  EXPECT_EQ(r.ended[0].phase, phase::read);
  EXPECT_EQ(r.q.snapshot().tombstones, 1u);
  EXPECT_EQ(r.q.snapshot().abandoned, 1u);
  EXPECT_FALSE(r.q.settled());
  EXPECT_TRUE(r.q.idle());
}

TEST(call_queue, C01_a_late_reply_is_discarded_and_the_next_one_goes_to_its_own_call) {
  queue_rig r;
  r.ready();
  auto const first = r.sent(1);
  auto const gone = r.cancel(first);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->effect, effect::unknown);
  EXPECT_EQ(gone->phase, phase::read);
  r.sent(2);
  EXPECT_EQ(r.q.next_to_answer(), std::nullopt);
  auto const late = r.reply();
  EXPECT_EQ(late.what, kind::discarded);
  EXPECT_TRUE(late.last);
  EXPECT_EQ(r.q.next_to_answer(), 2u);
  auto const own = r.reply();
  EXPECT_EQ(own.what, kind::answer);
  EXPECT_EQ(own.tag, 2u);
  EXPECT_EQ(r.q.snapshot().discarded_replies, 1u);
  EXPECT_TRUE(r.q.settled());
}

TEST(call_queue, a_call_ended_while_being_written_says_so) {
  queue_rig r;
  r.ready();
  auto const id = r.submit(1, 10);
  (void)r.take();
  auto const gone = r.cancel(id);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->effect, effect::unknown);
  EXPECT_EQ(gone->phase, phase::write);
}

TEST(call_queue, replies_match_first_in_first_out_with_several_per_call) {
  queue_rig r;
  r.ready();
  r.submit(1, 10, 3);
  r.submit(2, 10, 1);
  r.submit(3, 10, 2);
  EXPECT_EQ(r.take(), (tags{1, 2, 3}));
  r.written(30);
  std::vector<std::pair<std::uint64_t, bool>> seen;
  for (int i = 0; i < 6; ++i) {
    auto const m = r.reply();
    ASSERT_EQ(m.what, kind::answer);
    seen.emplace_back(m.tag, m.last);
  }
  std::vector<std::pair<std::uint64_t, bool>> const wanted{{1, false}, {1, false}, {1, true},
                                                           {2, true},  {3, false}, {3, true}};
  EXPECT_EQ(seen, wanted);
  EXPECT_EQ(r.reply().what, kind::unexpected);
}

TEST(call_queue, a_tombstone_owes_what_is_left_of_several_replies) {
  queue_rig r;
  r.ready();
  auto const id = r.sent(1, 10, 3);
  EXPECT_EQ(r.reply().what, kind::answer);
  ASSERT_TRUE(r.cancel(id));
  r.sent(2);
  auto m = r.reply();
  EXPECT_EQ(m.what, kind::discarded);
  EXPECT_FALSE(m.last);
  m = r.reply();
  EXPECT_EQ(m.what, kind::discarded);
  EXPECT_TRUE(m.last);
  EXPECT_EQ(r.reply().tag, 2u);
  EXPECT_EQ(r.q.snapshot().discarded_replies, 2u);
}

TEST(call_queue, a_reply_without_a_request_is_unexpected) {
  queue_rig r;
  r.ready();
  EXPECT_EQ(r.reply().what, kind::unexpected);
  r.submit(1);
  EXPECT_EQ(r.reply().what, kind::unexpected) << "a waiting call was not sent, so nothing can be its answer";
}

TEST(call_queue, partial_writes_count_byte_by_byte) {
  queue_rig r;
  r.ready();
  r.submit(1, 3);
  r.submit(2, 4);
  EXPECT_EQ(r.take(), (tags{1, 2}));
  for (int i = 0; i < 6; ++i) {
    r.written(1);
    EXPECT_EQ(r.take(), tags{});
    EXPECT_FALSE(r.q.half_written());
  }
  r.submit(3);
  r.written(1);
  EXPECT_EQ(r.take(), tags{3});
}

TEST(call_queue, a_reply_may_come_before_the_write_is_reported) {
  queue_rig r;
  r.ready();
  r.submit(1, 3);
  r.submit(2, 4);
  (void)r.take();
  EXPECT_EQ(r.reply().tag, 1u);
  r.submit(3, 5);
  EXPECT_EQ(r.take(), tags{}) << "the write is still under way";
  r.written(5);  // three of them belong to the call that was answered already
  EXPECT_EQ(r.reply().tag, 2u) << "and this one is answered before its last two bytes are reported";
  EXPECT_EQ(r.take(), tags{}) << "still under way: two bytes are not accounted for";
  r.written(2);
  EXPECT_EQ(r.take(), tags{3});
  r.written(4);
  EXPECT_EQ(r.take(), tags{});
  r.written(1);
  EXPECT_EQ(r.reply().tag, 3u);
  EXPECT_TRUE(r.q.settled());
}

TEST(call_queue, replies_before_the_write_is_reported_leave_no_byte_for_the_next_batch) {
  queue_rig r;
  r.ready();
  r.submit(1, 10);
  (void)r.take();
  EXPECT_EQ(r.reply().tag, 1u);
  auto const second = r.submit(2, 20);
  EXPECT_EQ(r.take(), tags{});
  r.written(10);
  EXPECT_EQ(r.take(), tags{2});
  ASSERT_TRUE(r.cancel(second));
  EXPECT_FALSE(r.q.half_written()) << "no byte of it was written";
}

TEST(call_queue, end_waiting_ends_every_waiting_call_without_effect) {
  queue_rig r;
  r.ready();
  r.sent(1);
  r.submit(2);
  r.submit(3);
  r.q.end_waiting(phase::connect, r.ended);
  ASSERT_EQ(r.ended.size(), 2u);
  for (auto const& e : r.ended) {
    EXPECT_EQ(e.effect, effect::none);
    EXPECT_EQ(e.phase, phase::connect);
  }
  EXPECT_FALSE(r.q.has_waiting());
  EXPECT_EQ(r.reply().tag, 1u);
}

TEST(call_queue, limits_are_the_earliest_of_stage_and_call) {
  call_queue_options const options{.connect_timeout = 30ms, .attempt_timeout = 50ms};
  {
    queue_rig r(options);
    r.submit(1, 10, 1, 200ms);
    r.advance(29ms);
    EXPECT_TRUE(r.ended.empty());
    r.advance(1ms);
    EXPECT_EQ(r.ended_tags(), tags{1}) << "connect_timeout";
  }
  {
    queue_rig r(options);
    r.submit(1, 10, 1, 200ms);
    r.advance(20ms);
    r.ready();  // the attempt begins here
    r.advance(49ms);
    EXPECT_TRUE(r.ended.empty());
    r.advance(1ms);
    EXPECT_EQ(r.ended_tags(), tags{1}) << "attempt_timeout";
  }
  {
    queue_rig r(options);
    r.submit(1, 10, 1, 60ms);
    r.advance(20ms);
    r.ready();
    r.advance(39ms);
    EXPECT_TRUE(r.ended.empty());
    r.advance(1ms);
    EXPECT_EQ(r.ended_tags(), tags{1}) << "call_timeout";
  }
}

TEST(call_queue, an_own_budget_replaces_the_limits_of_the_stages) {
  queue_rig r({.connect_timeout = 30ms, .attempt_timeout = 50ms});
  r.submit(1, 10, 1, 200ms, true);
  r.advance(100ms);
  EXPECT_TRUE(r.ended.empty());
  r.ready();
  (void)r.take();
  r.written(10);
  r.advance(99ms);
  EXPECT_TRUE(r.ended.empty());
  r.advance(1ms);
  EXPECT_EQ(r.ended_tags(), tags{1});
}

TEST(call_queue, live_lists_what_has_not_ended_in_the_order_of_its_answers) {
  queue_rig r;
  r.ready();
  r.sent(1);
  auto const gone = r.sent(2);
  ASSERT_TRUE(r.cancel(gone));
  r.submit(3);
  (void)r.take();
  r.submit(4);
  auto const live = r.q.live(phase::queue);
  ASSERT_EQ(live.size(), 3u);
  EXPECT_EQ(live[0].tag, 1u);
  EXPECT_EQ(live[0].phase, phase::read);
  EXPECT_EQ(live[1].tag, 3u);
  EXPECT_EQ(live[1].phase, phase::write);
  EXPECT_EQ(live[2].tag, 4u);
  EXPECT_EQ(live[2].phase, phase::queue);
  EXPECT_EQ(live[2].effect, effect::none);
}

// Fill, expire, cancel and lose, a hundred times over: whatever ends a call gives its place back.
TEST(call_queue, C61_counters_return_to_zero_after_every_round) {
  queue_rig r;
  std::uint64_t tag = 1;
  std::size_t memory = 0;
  for (int round = 0; round < 100; ++round) {
    r.ready();
    std::vector<redoubt::call_id> ids;
    for (int i = 0; i < 64; ++i) ids.push_back(r.submit(tag++, 10));
    EXPECT_EQ(r.q.snapshot().waiting_bytes, 640u);
    (void)r.take(200);
    r.written(static_cast<std::size_t>(round) % 200 + 1);
    for (std::size_t i = 0; i < ids.size(); i += 5) (void)r.cancel(ids[i]);
    if (round % 2 == 0) (void)r.reply();
    if (round % 3 == 0) r.advance(200ms);
    r.lose();
    r.q.end_waiting(phase::queue, r.ended);
    auto const s = r.q.snapshot();
    EXPECT_EQ(s.waiting, 0u);
    EXPECT_EQ(s.owed, 0u);
    EXPECT_EQ(s.tombstones, 0u);
    EXPECT_EQ(s.waiting_bytes, 0u);
    EXPECT_FALSE(r.q.next_wakeup());
    std::size_t highest = 0;
    for (auto const id : ids) highest = std::max<std::size_t>(highest, id.index);
    if (round == 0) memory = highest;
    EXPECT_EQ(highest, memory) << "places are used again";
    r.ready();
    r.sent(tag++);
    EXPECT_EQ(r.reply().what, kind::answer) << "the next call is served";
    r.lose();
  }
}

TEST(call_queue, many_calls_that_expire_together_cost_little_each) {
  queue_rig r({.tombstones = 1'000'000});
  r.q.on_ready(r.now);
  constexpr std::uint64_t calls = 100'000;
  for (std::uint64_t i = 0; i < calls; ++i) {
    (void)r.q.submit({i + 1, 10, 1, redoubt::deadline(r.now + 50ms), false}, r.now);
  }
  std::vector<std::uint64_t> batch;
  r.q.take_batch(10 * calls, r.now, batch);
  r.q.on_written(10 * calls, r.now);
  // Quadratic work here would take minutes and meet the time limit of the test.
  r.q.on_time(r.now + 51ms, phase::queue, r.ended);
  EXPECT_EQ(r.ended.size(), calls);
  EXPECT_EQ(r.q.snapshot().tombstones, calls);
}

}  // namespace
