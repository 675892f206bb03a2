// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/bulkhead_queue.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include <redoubt/core/ring.hpp>

namespace {

using namespace std::chrono_literals;
using redoubt::bulkhead_queue;
using redoubt::deadline;
using redoubt::time_point;
using kind = bulkhead_queue::entry::kind;

time_point const start{1h};
deadline const never{};

TEST(bulkhead_queue, grants_up_to_the_slots_then_queues_then_refuses) {
  bulkhead_queue q(2, 1);
  EXPECT_EQ(q.enter(start, never).what, kind::granted);
  EXPECT_EQ(q.enter(start, never).what, kind::granted);
  EXPECT_EQ(q.enter(start, never).what, kind::queued);
  EXPECT_EQ(q.enter(start, never).what, kind::full);
  EXPECT_EQ(q.try_enter(), kind::full);
  q.check();
  auto const s = q.snapshot();
  EXPECT_EQ(s.slots, 2u);
  EXPECT_EQ(s.used, 2u);
  EXPECT_EQ(s.waiting, 1u);
  EXPECT_EQ(s.granted, 2u);
  EXPECT_EQ(s.refused, 2u);
}

TEST(bulkhead_queue, hands_a_slot_to_the_first_waiter_and_nobody_overtakes) {
  bulkhead_queue q(1, 4);
  EXPECT_EQ(q.enter(start, never).what, kind::granted);
  auto const first = q.enter(start, never).id;
  auto const second = q.enter(start, never).id;
  EXPECT_EQ(q.leave(), first);
  EXPECT_FALSE(q.has_free_slot());
  EXPECT_EQ(q.try_enter(), kind::full);
  EXPECT_EQ(q.leave(), second);
  EXPECT_EQ(q.leave(), std::nullopt);
  EXPECT_TRUE(q.has_free_slot());
  q.check();
}

TEST(bulkhead_queue, C96_waiters_that_have_gone_eat_no_slot) {
  bulkhead_queue q(8, 64);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(q.enter(start, never).what, kind::granted);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(q.enter(start, deadline(start + 50ms)).what, kind::queued);
  EXPECT_EQ(q.next_wakeup(), start + 50ms);
  redoubt::ring<bulkhead_queue::waiter_id> expired;
  q.on_time(start + 49ms, expired);
  EXPECT_TRUE(expired.empty());
  q.on_time(start + 50ms, expired);
  EXPECT_EQ(expired.size(), 8u);
  EXPECT_EQ(q.next_wakeup(), time_point::max());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(q.leave(), std::nullopt);
  EXPECT_EQ(q.snapshot().used, 0u);
  EXPECT_EQ(q.snapshot().expired, 8u);
  EXPECT_EQ(q.enter(start + 60ms, never).what, kind::granted);
}

TEST(bulkhead_queue, withdrawing_works_once_and_only_while_waiting) {
  bulkhead_queue q(1, 2);
  (void)q.enter(start, never);
  auto const id = q.enter(start, never).id;
  EXPECT_TRUE(q.withdraw(id));
  EXPECT_FALSE(q.withdraw(id));
  auto const other = q.enter(start, never).id;
  EXPECT_EQ(q.leave(), other);
  EXPECT_FALSE(q.withdraw(other));
  q.check();
}

TEST(bulkhead_queue, a_passed_deadline_is_expired_even_when_a_slot_is_free) {
  bulkhead_queue q(1, 1);
  EXPECT_EQ(q.enter(start, deadline(start)).what, kind::expired);
  EXPECT_EQ(q.snapshot().used, 0u);
  EXPECT_EQ(q.snapshot().expired, 1u);
}

// All sequences of steps up to a length, checked against a plain model.
struct model {
  std::size_t slots, places;
  std::size_t used = 0;
  std::deque<std::pair<std::uint64_t, deadline>> queue{};
};

void explore(bulkhead_queue const& q, model const& m, time_point now, int depth, std::size_t& states) {
  q.check();
  ++states;
  ASSERT_EQ(q.snapshot().used, m.used);
  ASSERT_EQ(q.snapshot().waiting, m.queue.size());
  if (depth == 0) return;

  for (auto by : {never, deadline(now + 1ms), deadline(now + 2ms)}) {
    auto q2 = q;
    auto m2 = m;
    auto const e = q2.enter(now, by);
    if (m2.used < m2.slots) {
      ASSERT_EQ(e.what, kind::granted);
      ++m2.used;
    } else if (m2.queue.size() < m2.places) {
      ASSERT_EQ(e.what, kind::queued);
      m2.queue.emplace_back(e.id, by);
    } else {
      ASSERT_EQ(e.what, kind::full);
    }
    explore(q2, m2, now, depth - 1, states);
  }
  if (m.used > 0) {
    auto q2 = q;
    auto m2 = m;
    auto const next = q2.leave();
    if (m2.queue.empty()) {
      ASSERT_EQ(next, std::nullopt);
      --m2.used;
    } else {
      ASSERT_EQ(next, m2.queue.front().first);
      m2.queue.pop_front();
    }
    explore(q2, m2, now, depth - 1, states);
  }
  for (std::size_t i = 0; i < m.queue.size(); ++i) {
    auto q2 = q;
    auto m2 = m;
    ASSERT_TRUE(q2.withdraw(m2.queue[i].first));
    m2.queue.erase(m2.queue.begin() + static_cast<std::ptrdiff_t>(i));
    explore(q2, m2, now, depth - 1, states);
  }
  {
    auto q2 = q;
    auto m2 = m;
    auto const later = now + 1ms;
    redoubt::ring<bulkhead_queue::waiter_id> expired;
    q2.on_time(later, expired);
    auto const gone = std::erase_if(m2.queue, [&](auto const& w) { return w.second.passed(later); });
    ASSERT_EQ(expired.size(), gone);
    explore(q2, m2, later, depth - 1, states);
  }
}

TEST(bulkhead_queue, agrees_with_a_model_in_every_sequence_of_seven_steps) {
  std::size_t states = 0;
  explore(bulkhead_queue(1, 2), model{.slots = 1, .places = 2}, start, 7, states);
  explore(bulkhead_queue(2, 1), model{.slots = 2, .places = 1}, start, 7, states);
  explore(bulkhead_queue(1, 0), model{.slots = 1, .places = 0}, start, 7, states);
  EXPECT_GT(states, 50'000u);
}

}  // namespace
