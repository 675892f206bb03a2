// SPDX-License-Identifier: BSL-1.0
//
// What is made once and kept: the text of refusals, and the memory of calls.
#include <redoubt/core/named_detail.hpp>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/block_cache.hpp>

namespace {

using redoubt::detail::block_cache;
using redoubt::detail::named_detail;

TEST(named_detail, is_one_for_a_name_and_not_counted_until_there_are_too_many) {
  auto const db = named_detail("a name of this test");
  EXPECT_EQ(db->note, "a name of this test");
  EXPECT_EQ(db, named_detail("a name of this test"));
  EXPECT_EQ(db.use_count(), 0);
  EXPECT_NE(db, named_detail("another name of this test"));
  for (int i = 0; i < 1024; ++i) (void)named_detail("tenant " + std::to_string(i));
  auto const late = named_detail("one more");
  EXPECT_EQ(late->note, "one more");
  EXPECT_EQ(late.use_count(), 1) << "made for this one caller, and goes with it";
  EXPECT_EQ(db, named_detail("a name of this test")) << "the ones before stay";
}

TEST(block_cache, keeps_a_few_blocks_for_a_thread_and_a_few_for_all) {
  using cache = block_cache<1234, 8>;
  std::vector<void*> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(cache::take());
  std::sort(blocks.begin(), blocks.end());
  EXPECT_EQ(std::unique(blocks.begin(), blocks.end()), blocks.end()) << "none is given twice";
  void* const last = blocks[0];
  for (auto* const b : blocks) cache::give_back(b);
  EXPECT_EQ(cache::take(), last) << "the first one that came back is this thread's own";
  std::thread other([&] {
    void* const shared = cache::take();
    EXPECT_NE(std::find(blocks.begin(), blocks.end(), shared), blocks.end()) << "one of the eight";
    cache::give_back(shared);
    cache::give_back(last);  // and ends: what it kept is freed
  });
  other.join();
}

}  // namespace
