// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/bulkhead_queue.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/ring.hpp>

namespace {

using namespace std::chrono_literals;
using redoubt::bulkhead_limits;
using redoubt::bulkhead_queue;
using redoubt::deadline;
using redoubt::slot_class;
using redoubt::slot_priority;
using redoubt::slot_use;
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

TEST(bulkhead_queue, C80_once_abandoned_whoever_gives_the_last_slot_back_knows_it) {
  bulkhead_queue q(4, 0);
  slot_class const fallback{slot_use::fallback};
  ASSERT_TRUE(q.enter_at_once({}));
  ASSERT_TRUE(q.enter_at_once({}));
  ASSERT_TRUE(q.enter_at_once(fallback));
  ASSERT_TRUE(q.leave_at_once({}));
  EXPECT_FALSE(q.over());
  EXPECT_TRUE(q.abandon());
  EXPECT_FALSE(q.leave_at_once({})) << "not past the end";
  EXPECT_EQ(q.leave(), std::nullopt);
  EXPECT_FALSE(q.over()) << "one of the other use is still out";
  EXPECT_EQ(q.leave(fallback), std::nullopt);
  EXPECT_TRUE(q.over());
  q.check();

  bulkhead_queue idle(4, 0);
  EXPECT_FALSE(idle.abandon()) << "nothing is out, nobody has to end it";
  EXPECT_TRUE(idle.over());
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

TEST(bulkhead_queue, D_26_fallback_work_has_an_allowance_of_its_own) {
  bulkhead_queue q(bulkhead_limits{.slots = 4, .waiters = 4, .shares = {.fallback = 1}});
  slot_class const fallback{slot_use::fallback};
  EXPECT_EQ(q.enter(start, never, fallback).what, kind::granted);
  auto const second = q.enter(start, never, fallback);
  EXPECT_EQ(second.what, kind::queued);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(q.enter(start, never).what, kind::granted) << "ordinary work is not held up";
  q.check();
  EXPECT_EQ(q.leave(), std::nullopt) << "a free slot is no use to who has used up its allowance";
  EXPECT_EQ(q.leave(fallback), second.id);
  EXPECT_EQ(q.snapshot().fallback, 1u);
}

TEST(bulkhead_queue, D_26_a_lowered_limit_drains_and_a_raised_one_serves_at_once) {
  bulkhead_queue q(4, 4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(q.enter_at_once({}));
  auto const waiter = q.enter(start, never).id;
  redoubt::ring<bulkhead_queue::waiter_id> granted;
  q.resize(bulkhead_limits{.slots = 2, .waiters = 4}, granted);
  EXPECT_TRUE(granted.empty());
  EXPECT_EQ(q.snapshot().used, 4u);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(q.leave(), std::nullopt);
  EXPECT_EQ(q.leave(), waiter) << "now there is room again";
  (void)q.enter(start, never);
  auto const other = q.enter(start, never).id;
  q.resize(bulkhead_limits{.slots = 8, .waiters = 4}, granted);
  EXPECT_EQ(granted.size(), 2u);
  (void)granted.pop_front();
  EXPECT_EQ(granted.front(), other);
  q.check();
}

TEST(bulkhead_queue, what_matters_more_is_served_first_and_keeps_a_share) {
  bulkhead_queue q(bulkhead_limits{.slots = 4, .waiters = 8, .shares = {.low_priority = 0.5}});
  slot_class const low{slot_use::normal, slot_priority::low}, high{slot_use::normal, slot_priority::high};
  EXPECT_TRUE(q.enter_at_once(low));
  EXPECT_TRUE(q.enter_at_once(low));
  EXPECT_FALSE(q.enter_at_once(low));
  EXPECT_TRUE(q.enter_at_once({}));
  EXPECT_TRUE(q.enter_at_once(high));
  auto const first_low = q.enter(start, never, low).id;
  auto const ordinary = q.enter(start, never).id;
  auto const urgent = q.enter(start, never, high).id;
  EXPECT_EQ(q.leave(), urgent);
  EXPECT_EQ(q.leave(high), ordinary);
  EXPECT_EQ(q.leave(low), std::nullopt);
  EXPECT_EQ(q.leave(low), std::nullopt) << "two are still used: half of them";
  EXPECT_EQ(q.leave(high), first_low);
  q.check();
}

TEST(bulkhead_queue, nobody_takes_or_gives_back_a_slot_past_a_waiter) {
  bulkhead_queue q(1, 1);
  EXPECT_TRUE(q.enter_at_once({}));
  auto const waiter = q.enter(start, never).id;
  EXPECT_FALSE(q.leave_at_once({}));
  EXPECT_FALSE(q.enter_at_once({}));
  EXPECT_EQ(q.leave(), waiter);
  EXPECT_TRUE(q.leave_at_once({})) << "nobody waits any more";
}

// Else a slot given back would have to go to two at once.
TEST(bulkhead_queue, low_priority_never_has_a_larger_share_than_normal) {
  bulkhead_queue q(
      bulkhead_limits{.slots = 2, .waiters = 2, .shares = {.normal = 1, .normal_priority = 0.5}});
  EXPECT_EQ(q.enter(start, never).what, kind::granted);
  auto const low = q.enter(start, never, {slot_use::normal, slot_priority::low});
  auto const other = q.enter(start, never, {slot_use::fallback});
  EXPECT_EQ(low.what, kind::queued);
  EXPECT_EQ(other.what, kind::queued);
  EXPECT_EQ(q.leave(), other.id);
  q.check();
  EXPECT_EQ(q.leave({slot_use::fallback}), low.id);
  q.check();
}

// All sequences of steps up to a length, against a plain model: three classes, limits that change.
struct model_waiter {
  std::uint64_t id;
  slot_class what;
  deadline by;
};

struct model {
  bulkhead_limits limits;
  std::vector<slot_class> used{};
  std::vector<model_waiter> queue{};  // by arrival

  [[nodiscard]] bool fits(slot_class what) const {
    auto const& shares = limits.shares;
    auto const share = what.priority == slot_priority::low
                           ? std::min(shares.low_priority, shares.normal_priority)
                           : shares.normal_priority;
    auto const ceiling = std::max<std::size_t>(1, static_cast<std::size_t>(share * limits.slots));
    auto const same = static_cast<std::size_t>(
        std::count_if(used.begin(), used.end(), [&](auto u) { return u.use == what.use; }));
    auto const most =
        (what.use == slot_use::fallback ? shares.fallback : shares.normal).value_or(limits.slots);
    return used.size() < ceiling && same < most;
  }
  /// Gives slots to waiters until nobody fits.
  std::vector<std::uint64_t> serve() {
    std::vector<std::uint64_t> out;
    for (;;) {
      auto best = queue.end();
      for (auto at = queue.begin(); at != queue.end(); ++at) {
        if (fits(at->what) && (best == queue.end() || at->what.priority > best->what.priority)) best = at;
      }
      if (best == queue.end()) return out;
      used.push_back(best->what);
      out.push_back(best->id);
      queue.erase(best);
    }
  }
};

std::array<slot_class, 3> const classes{slot_class{}, slot_class{slot_use::fallback},
                                        slot_class{slot_use::normal, slot_priority::low}};

void explore(bulkhead_queue const& q, model const& m, time_point now, int depth, std::size_t& states) {
  q.check();
  ++states;
  ASSERT_EQ(q.snapshot().used, m.used.size());
  ASSERT_EQ(q.snapshot().waiting, m.queue.size());
  if (depth == 0) return;

  for (auto const what : classes) {
    for (auto by : {never, deadline(now + 1ms)}) {
      if (by != never && what != classes[0]) continue;
      auto q2 = q;
      auto m2 = m;
      bool const at_once = q2.enter_at_once(what);
      ASSERT_EQ(at_once, m.queue.empty() && m.fits(what));
      auto const e = at_once ? bulkhead_queue::entry{kind::granted, 0} : q2.enter(now, by, what);
      if (m2.fits(what)) {
        ASSERT_EQ(e.what, kind::granted);
        m2.used.push_back(what);
      } else if (m2.queue.size() < m2.limits.waiters) {
        ASSERT_EQ(e.what, kind::queued);
        m2.queue.push_back({e.id, what, by});
      } else {
        ASSERT_EQ(e.what, kind::full);
      }
      explore(q2, m2, now, depth - 1, states);
    }
  }
  for (auto const what : classes) {
    auto const held = std::find(m.used.begin(), m.used.end(), what);
    if (held == m.used.end()) continue;
    auto q2 = q;
    auto m2 = m;
    m2.used.erase(m2.used.begin() + (held - m.used.begin()));
    auto const expected = m2.serve();
    ASSERT_LE(expected.size(), 1u);
    bool const at_once = q2.leave_at_once(what);
    ASSERT_EQ(at_once, m.queue.empty());
    if (!at_once) {
      ASSERT_EQ(q2.leave(what), expected.empty() ? std::nullopt : std::optional(expected[0]));
    }
    explore(q2, m2, now, depth - 1, states);
  }
  for (std::size_t i = 0; i < m.queue.size(); ++i) {
    auto q2 = q;
    auto m2 = m;
    ASSERT_TRUE(q2.withdraw(m2.queue[i].id));
    m2.queue.erase(m2.queue.begin() + static_cast<std::ptrdiff_t>(i));
    explore(q2, m2, now, depth - 1, states);
  }
  for (std::uint32_t slots : {1u, 3u}) {
    if (slots == m.limits.slots) continue;
    auto q2 = q;
    auto m2 = m;
    m2.limits.slots = slots;
    redoubt::ring<bulkhead_queue::waiter_id> granted;
    q2.resize(m2.limits, granted);
    for (auto const id : m2.serve()) ASSERT_EQ(granted.pop_front(), id);
    ASSERT_TRUE(granted.empty());
    explore(q2, m2, now, depth - 1, states);
  }
  if (!m.queue.empty()) {
    auto q2 = q;
    auto m2 = m;
    auto const later = now + 1ms;
    redoubt::ring<bulkhead_queue::waiter_id> expired;
    q2.on_time(later, expired);
    auto const gone = std::erase_if(m2.queue, [&](auto const& w) { return w.by.passed(later); });
    ASSERT_EQ(expired.size(), gone);
    explore(q2, m2, later, depth - 1, states);
  }
}

TEST(bulkhead_queue, agrees_with_a_model_in_every_sequence_of_six_steps) {
  std::size_t states = 0;
  for (bulkhead_limits const& limits :
       {bulkhead_limits{.slots = 1, .waiters = 2}, bulkhead_limits{.slots = 2, .waiters = 1},
        bulkhead_limits{.slots = 3, .waiters = 2, .shares = {.fallback = 1, .low_priority = 0.5}},
        bulkhead_limits{.slots = 2, .waiters = 2, .shares = {.normal = 1, .normal_priority = 0.5}}}) {
    explore(bulkhead_queue(limits), model{.limits = limits}, start, 6, states);
  }
  EXPECT_GT(states, 50'000u);
}

}  // namespace
