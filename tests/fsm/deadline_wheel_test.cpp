// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/deadline_wheel.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/random.hpp>

namespace {

using namespace std::chrono_literals;
using redoubt::deadline_wheel;
using redoubt::duration;
using redoubt::time_point;

constexpr auto tick = deadline_wheel::tick;
time_point const start{5h + 123456ns};

std::vector<std::uint32_t> expired(deadline_wheel& w, time_point now) {
  std::vector<std::uint32_t> out;
  w.on_time(now, out);
  EXPECT_TRUE(w.check());
  std::sort(out.begin(), out.end());
  return out;
}

using items = std::vector<std::uint32_t>;

TEST(deadline_wheel, reports_never_early_and_at_most_one_tick_late) {
  for (duration in : {0ns, 1ns, 999'999ns, 1'000'000ns, 1'000'001ns, 10'000'000ns, 511'999'999ns,
                      512'000'000ns, 513'000'000ns, 5'000'000'000ns}) {
    for (duration offset : {0ns, 1ns, 500'000ns, 999'999ns}) {
      deadline_wheel w;
      auto const now = time_point{1h} + offset;
      w.add(0, now + in, now);
      if (in > 0ns) {
        EXPECT_EQ(expired(w, now + in - 1ns), items{}) << in.count() << " " << offset.count();
      }
      EXPECT_EQ(expired(w, now + in + tick), items{0}) << in.count() << " " << offset.count();
      EXPECT_TRUE(w.empty());
      EXPECT_FALSE(w.next_wakeup());
    }
  }
}

TEST(deadline_wheel, waking_up_when_it_says_so_meets_every_deadline_within_one_tick) {
  redoubt::random_source random(4);
  for (int round = 0; round < 500; ++round) {
    deadline_wheel w;
    auto now = start + duration(static_cast<long>(random.below(5'000'000)));
    auto const when = now + duration(static_cast<long>(random.below(3'000'000'000)));
    w.add(0, when, now);
    int wakeups = 0;
    for (;;) {
      auto const next = w.next_wakeup();
      ASSERT_TRUE(next);
      ASSERT_GE(*next, now) << "a wake-up in the past would be a hot loop";
      now = *next;
      ++wakeups;
      if (!expired(w, now).empty()) break;
      ASSERT_LT(now, when) << "late";
    }
    EXPECT_GE(now, when);
    EXPECT_LE(now, when + tick);
    EXPECT_LE(wakeups, 8) << "a far deadline costs one wake-up per turn of the wheel, not one per tick";
  }
}

TEST(deadline_wheel, a_deadline_in_the_past_is_reported_within_one_tick) {
  for (duration ago : {0ns, 1ns, 1'000'000ns, 600'000'000ns, 3'600'000'000'000ns}) {
    deadline_wheel w;
    w.add(1, start - ago, start);
    EXPECT_LE(*w.next_wakeup(), start + tick);
    EXPECT_EQ(expired(w, start + tick), items{1});
    // The same beside another item, and after the wheel has moved on.
    w.add(2, start + 10s, start + tick);
    EXPECT_EQ(expired(w, start + 100ms), items{});
    w.add(3, start + 100ms - ago, start + 100ms);
    EXPECT_LE(*w.next_wakeup(), start + 101ms);
    EXPECT_EQ(expired(w, start + 101ms), items{3});
    EXPECT_EQ(w.size(), 1u);
  }
}

TEST(deadline_wheel, a_deadline_that_never_comes_is_kept_and_can_be_removed) {
  deadline_wheel w;
  w.add(0, time_point::max(), start);
  auto now = start;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(expired(w, now), items{});
    now += 100ms;
    EXPECT_GE(*w.next_wakeup(), now - 100ms);
  }
  w.remove(0);
  EXPECT_TRUE(w.empty());
  EXPECT_TRUE(w.check());
}

TEST(deadline_wheel, a_huge_jump_reports_everything_once) {
  deadline_wheel w;
  for (std::uint32_t i = 0; i < 2000; ++i) w.add(i, start + i * 3ms, start);
  EXPECT_EQ(expired(w, start + 1000h).size(), 2000u);
  EXPECT_EQ(expired(w, start + 2000h), items{});
  w.add(5, start + 2000h + 5ms, start + 2000h);
  EXPECT_EQ(expired(w, start + 2000h + 6ms), items{5});
}

TEST(deadline_wheel, items_a_whole_turn_apart_do_not_fire_together) {
  deadline_wheel w;
  for (std::uint32_t turn = 0; turn < 5; ++turn) w.add(turn, start + 10ms + turn * 512ms, start);
  for (std::uint32_t turn = 0; turn < 5; ++turn) {
    EXPECT_EQ(expired(w, start + 9ms + turn * 512ms), items{});
    EXPECT_EQ(expired(w, start + 11ms + turn * 512ms), items{turn});
  }
}

TEST(deadline_wheel, removing_is_quiet_about_what_is_not_there) {
  deadline_wheel w;
  w.remove(7);
  w.add(3, start + 5ms, start);
  w.remove(7);
  w.remove(2);
  EXPECT_TRUE(w.contains(3));
  w.remove(3);
  w.remove(3);
  EXPECT_FALSE(w.contains(3));
  EXPECT_FALSE(w.contains(900));
  EXPECT_EQ(expired(w, start + 10ms), items{});
}

TEST(deadline_wheel, a_clock_that_stands_still_or_steps_back_loses_nothing) {
  deadline_wheel w;
  w.add(0, start + 5ms, start);
  EXPECT_EQ(expired(w, start + 3ms), items{});
  EXPECT_EQ(expired(w, start + 3ms), items{});
  EXPECT_EQ(expired(w, start + 1ms), items{});
  w.add(1, start + 4ms, start + 1ms);
  EXPECT_EQ(expired(w, start + 6ms), (items{0, 1}));
}

TEST(deadline_wheel, works_before_the_epoch_of_the_clock) {
  deadline_wheel w;
  time_point const early{-10s - 3ns};
  w.add(0, early + 7ms, early);
  w.add(1, early + 20s, early);
  EXPECT_EQ(expired(w, early + 6ms), items{});
  EXPECT_EQ(expired(w, early + 8ms), items{0});
  EXPECT_EQ(expired(w, early + 20s - 1ns), items{});
  EXPECT_EQ(expired(w, early + 20s + tick), items{1});
}

// Against a plain map, with every kind of step in random order.
TEST(deadline_wheel, agrees_with_a_sorted_map) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    redoubt::random_source random(seed);
    deadline_wheel w;
    std::map<std::uint32_t, time_point> model;
    auto now = start;
    for (int step = 0; step < 3000; ++step) {
      auto const item = static_cast<std::uint32_t>(random.below(64));
      switch (random.below(6)) {
        case 0:
        case 1:
        case 2: {
          if (model.contains(item)) break;
          constexpr std::int64_t spans[] = {2'000'000, 50'000'000, 600'000'000, 5'000'000'000};
          auto const span = spans[random.below(4)];
          auto const when =
              now +
              duration(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(span))) - span / 10);
          w.add(item, when, now);
          model.emplace(item, when);
          break;
        }
        case 3:
          w.remove(item);
          model.erase(item);
          break;
        case 4:
          now += duration(
              static_cast<std::int64_t>(random.below(random.chance(1, 20) ? 3'000'000'000 : 3'000'000)));
          break;
        default:
          if (auto const next = w.next_wakeup(); next && *next > now) now = *next;
          break;
      }
      for (auto const gone : expired(w, now)) {
        auto const found = model.find(gone);
        ASSERT_NE(found, model.end()) << "seed " << seed << " step " << step;
        ASSERT_LE(found->second, now) << "early: seed " << seed << " step " << step;
        model.erase(found);
      }
      ASSERT_EQ(w.size(), model.size());
      ASSERT_EQ(w.next_wakeup().has_value(), !model.empty());
      for (auto const& [left, when] : model) {
        ASSERT_TRUE(w.contains(left));
        ASSERT_GT(when + tick, now) << "late: seed " << seed << " step " << step;
        ASSERT_LE(*w.next_wakeup(), std::max(when, now) + tick) << "seed " << seed << " step " << step;
      }
    }
  }
}

TEST(deadline_wheel, a_copy_goes_its_own_way) {
  deadline_wheel w;
  w.add(0, start + 5ms, start);
  w.add(1, start + 5ms, start);
  auto copy = w;
  copy.remove(0);
  EXPECT_EQ(expired(w, start + 6ms), (items{0, 1}));
  EXPECT_EQ(expired(copy, start + 6ms), items{1});
}

}  // namespace
