// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/backoff.hpp>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/option_error.hpp>

namespace {

using namespace std::chrono_literals;
using redoubt::backoff;
using redoubt::backoff_options;
using redoubt::duration;

TEST(backoff, C44_no_overflow_for_any_attempt_and_base) {
  for (duration base : std::vector<duration>{1ns, 7ns, 1us, 1ms, 999ms, 1s, 61s, 1h}) {
    for (duration cap : std::vector<duration>{base, base + 1ns, 1h, 24h}) {
      if (cap < base) continue;
      backoff_options const options{.base = base, .cap = cap};
      EXPECT_EQ(backoff::ceiling(options, 0), base);
      duration last = 0ns;
      for (unsigned attempt = 0; attempt <= 1'000'000; attempt += attempt < 300 ? 1 : 9973) {
        auto const pause = backoff::ceiling(options, attempt);
        ASSERT_GT(pause, 0ns) << attempt;
        ASSERT_LE(pause, cap) << attempt;
        ASSERT_GE(pause, last) << attempt;
        last = pause;
      }
      EXPECT_EQ(backoff::ceiling(options, 1'000'000), cap);
      EXPECT_EQ(backoff::ceiling(options, ~0u), cap);
    }
  }
}

TEST(backoff, C44_every_pause_of_a_million_stays_within_the_cap) {
  redoubt::random_source random(7);
  backoff pauses(backoff_options{.base = 1ns, .cap = 1s});
  for (unsigned i = 0; i < 1'000'000; ++i) {
    auto const pause = pauses.next(random);
    ASSERT_GE(pause, 0ns);
    ASSERT_LE(pause, 1s);
  }
  EXPECT_EQ(pauses.attempts(), 1'000'000u);
}

TEST(backoff, E_06_ceiling_doubles_up_to_the_cap) {
  backoff_options const options{.base = 1s, .cap = 10s};
  EXPECT_EQ(backoff::ceiling(options, 0), 1s);
  EXPECT_EQ(backoff::ceiling(options, 1), 2s);
  EXPECT_EQ(backoff::ceiling(options, 2), 4s);
  EXPECT_EQ(backoff::ceiling(options, 3), 8s);
  EXPECT_EQ(backoff::ceiling(options, 4), 10s);
}

TEST(backoff, E_06_full_jitter_is_uniform_from_zero_to_the_ceiling) {
  redoubt::random_source random(1);
  backoff_options const options{.base = 80ms, .cap = 80ms};
  backoff pauses(options);
  constexpr int draws = 80'000;
  std::vector<int> buckets(8);
  duration sum = 0ns;
  for (int i = 0; i < draws; ++i) {
    auto const pause = pauses.next(random);
    sum += pause;
    ++buckets[std::min<std::size_t>(7, static_cast<std::size_t>(pause / 10ms))];
  }
  EXPECT_NEAR(static_cast<double>((sum / draws).count()), 40e6, 0.5e6);
  for (int count : buckets) EXPECT_NEAR(count, draws / 8, draws / 8 / 10);
}

TEST(backoff, reset_starts_again_at_the_base) {
  redoubt::random_source random(3);
  backoff pauses(backoff_options{.base = 1ns, .cap = 1h});
  for (int i = 0; i < 60; ++i) (void)pauses.next(random);
  pauses.reset();
  EXPECT_EQ(pauses.attempts(), 0u);
  EXPECT_LE(pauses.next(random), 1ns);
}

TEST(backoff, same_seed_gives_the_same_pauses_and_a_copy_continues_like_the_original) {
  redoubt::random_source one(11);
  redoubt::random_source two(11);
  backoff a;
  backoff b;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(a.next(one), b.next(two));
  backoff copy = a;
  EXPECT_EQ(copy.next(one), a.next(two));
}

TEST(backoff, options_name_the_bad_field) {
  EXPECT_THROW(backoff(backoff_options{.base = 0ns}), redoubt::option_error);
  try {
    backoff bad(backoff_options{.base = 20ms, .cap = 10ms});
    FAIL() << "accepted";
  } catch (redoubt::option_error const& e) {
    EXPECT_EQ(e.field(), "cap");
    EXPECT_STREQ(e.what(), "backoff: cap is 10 ms, must be `base` to 24 h");
  }
}

}  // namespace
