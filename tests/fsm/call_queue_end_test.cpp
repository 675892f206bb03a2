// SPDX-License-Identifier: BSL-1.0
//
// The call queue: how calls end before their reply, in the middle of a write, by their caller, with their
// connection.
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

TEST(call_queue, C20_a_call_that_expires_with_a_part_written_makes_the_connection_useless) {
  queue_rig r;
  r.ready();
  r.submit(1, 1000);
  (void)r.take();
  r.written(400);
  r.advance(100ms);
  ASSERT_EQ(r.ended.size(), 1u);
  EXPECT_EQ(r.ended[0].phase, phase::write);
  EXPECT_EQ(r.ended[0].effect, effect::unknown);
  EXPECT_TRUE(r.q.half_written());
  r.lose();
  EXPECT_FALSE(r.q.half_written());
}

TEST(call_queue, C20_so_does_one_that_is_cut_after_its_time) {
  queue_rig r;
  r.ready();
  r.submit(1, 10);
  r.submit(2, 1000);
  EXPECT_EQ(r.take(), (tags{1, 2}));
  r.advance(100ms);
  EXPECT_THAT(r.ended_tags(), testing::UnorderedElementsAre(1, 2));
  EXPECT_FALSE(r.q.half_written()) << "no byte was taken yet: all of it may still go out";
  r.written(10);
  EXPECT_FALSE(r.q.half_written());
  r.written(500);
  EXPECT_TRUE(r.q.half_written());
}

TEST(call_queue, C03_cancel_while_waiting) {
  queue_rig r;
  r.ready();
  r.submit(1);
  auto const middle = r.submit(2);
  r.submit(3);
  auto const gone = r.cancel(middle);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->tag, 2u);
  EXPECT_EQ(gone->effect, effect::none);
  EXPECT_EQ(r.take(), (tags{1, 3}));
  r.written(20);
  EXPECT_EQ(r.reply().tag, 1u);
  EXPECT_EQ(r.reply().tag, 3u);
}

// The neighbours of a call that its caller gives up keep their connection, wherever the write stands.
TEST(call_queue, C03_cancel_while_the_write_is_half_done) {
  for (std::size_t first = 0; first < 30; ++first) {
    for (std::size_t second = 0; first + second < 30; ++second) {
      queue_rig r;
      r.ready();
      r.submit(1);
      auto const middle = r.submit(2);
      r.submit(3);
      EXPECT_EQ(r.take(), (tags{1, 2, 3}));
      r.written(first);
      auto const gone = r.cancel(middle);
      ASSERT_TRUE(gone);
      EXPECT_EQ(gone->effect, effect::unknown);
      EXPECT_EQ(gone->phase, first < 20 ? phase::write : phase::read);
      r.written(second);
      ASSERT_FALSE(r.q.half_written()) << first << " " << second;
      r.written(30 - first - second);
      EXPECT_EQ(r.reply().tag, 1u);
      EXPECT_EQ(r.reply().what, kind::discarded);
      EXPECT_EQ(r.reply().tag, 3u);
    }
  }
}

TEST(call_queue, C03_cancel_after_the_write) {
  queue_rig r;
  r.ready();
  r.submit(1);
  auto const middle = r.submit(2);
  r.submit(3);
  (void)r.take();
  r.written(30);
  auto const gone = r.cancel(middle);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->effect, effect::unknown);
  EXPECT_EQ(gone->phase, phase::read);
  EXPECT_EQ(r.reply().tag, 1u);
  EXPECT_EQ(r.reply().what, kind::discarded);
  EXPECT_EQ(r.reply().tag, 3u);
}

TEST(call_queue, an_id_is_good_for_its_own_call_only) {
  queue_rig r;
  r.ready();
  auto const answered = r.sent(1);
  (void)r.reply();
  EXPECT_FALSE(r.cancel(answered)) << "ended";
  auto const next = r.sent(2);
  EXPECT_EQ(next.index, answered.index) << "the place is used again";
  EXPECT_FALSE(r.cancel(answered)) << "the name is not";
  EXPECT_EQ(r.reply().tag, 2u);
  EXPECT_FALSE(r.cancel({77, 0})) << "never existed";
  auto const expired = r.submit(3, 10, 1, 20ms);
  r.advance(20ms);
  EXPECT_FALSE(r.cancel(expired));
  EXPECT_EQ(r.ended_tags(), tags{3});
}

TEST(call_queue, the_end_of_the_connection_ends_what_was_sent_and_keeps_what_waits) {
  queue_rig r;
  r.ready();
  r.sent(1);
  auto const gone = r.sent(2);
  ASSERT_TRUE(r.cancel(gone));
  r.submit(3, 10);
  EXPECT_EQ(r.take(), tags{3});
  r.written(4);
  r.submit(4);
  r.lose();
  ASSERT_EQ(r.ended.size(), 2u);
  EXPECT_EQ(r.ended[0].tag, 1u);
  EXPECT_EQ(r.ended[0].effect, effect::unknown);
  EXPECT_EQ(r.ended[0].phase, phase::read);
  EXPECT_EQ(r.ended[1].tag, 3u);
  EXPECT_EQ(r.ended[1].effect, effect::unknown);
  EXPECT_EQ(r.ended[1].phase, phase::write);
  EXPECT_TRUE(r.q.settled()) << "the tombstone is forgotten: its reply can never come";
  EXPECT_EQ(r.take(), tags{}) << "not ready";
  r.ready();
  EXPECT_EQ(r.take(), tags{4});
  r.written(10);
  EXPECT_EQ(r.reply().tag, 4u);
}

}  // namespace
