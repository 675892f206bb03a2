// SPDX-License-Identifier: BSL-1.0
#include <redoubt/core/ring.hpp>

#include <deque>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <redoubt/core/random.hpp>

namespace {

using redoubt::ring;

TEST(ring, agrees_with_a_deque) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    redoubt::random_source random(seed);
    ring<std::string> r;
    std::deque<std::string> model;
    for (int step = 0; step < 2000; ++step) {
      if (random.chance(1, 500)) {
        r.clear();
        model.clear();
      } else if (random.chance(11, 20)) {
        auto text = "some text that does not fit into the object itself " + std::to_string(step);
        r.push_back(text);
        model.push_back(std::move(text));
      } else if (!model.empty()) {
        ASSERT_EQ(r.pop_front(), model.front());
        model.pop_front();
      }
      ASSERT_EQ(r.size(), model.size());
      ASSERT_EQ(r.empty(), model.empty());
      if (model.empty()) continue;
      ASSERT_EQ(r.front(), model.front());
      ASSERT_EQ(r.back(), model.back());
      auto const i = random.below(model.size());
      ASSERT_EQ(r[i], model[i]);
    }
  }
}

TEST(ring, a_copy_goes_its_own_way) {
  ring<int> a;
  for (int i = 0; i < 20; ++i) a.push_back(i);
  for (int i = 0; i < 10; ++i) (void)a.pop_front();
  auto b = a;
  b.push_back(99);
  (void)b.pop_front();
  EXPECT_EQ(a.front(), 10);
  EXPECT_EQ(a.size(), 10u);
  EXPECT_EQ(b.front(), 11);
  EXPECT_EQ(b.back(), 99);
}

TEST(ring, lets_go_of_what_it_gives_away) {
  ring<std::shared_ptr<int>> r;
  auto const watched = std::make_shared<int>(1);
  for (int i = 0; i < 5; ++i) r.push_back(watched);
  EXPECT_EQ(watched.use_count(), 6);
  (void)r.pop_front();
  EXPECT_EQ(watched.use_count(), 5) << "the place it stood in is emptied";
  r.clear();
  EXPECT_EQ(watched.use_count(), 1);
}

TEST(ring, holds_what_can_only_be_moved) {
  ring<std::unique_ptr<int>> r;
  for (int i = 0; i < 100; ++i) r.push_back(std::make_unique<int>(i));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(*r.pop_front(), i);
}

}  // namespace
