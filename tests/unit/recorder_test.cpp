// SPDX-License-Identifier: BSL-1.0
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <redoubt/testing/recorder.hpp>

namespace {

using redoubt::event;
using redoubt::event_kind;
using redoubt::testing::recorder;

TEST(recorder, keeps_what_it_was_told_after_the_teller_is_gone) {
  recorder r;
  EXPECT_FALSE(r.last());
  {
    std::string const name = "cache";
    redoubt::failure const why{.code = redoubt::errc::connection_refused};
    r.on(event{event_kind::cache_read_failed, name, &why});
  }
  r.on(event{event_kind::ready, "client"});
  EXPECT_EQ(r.count(), 2u);
  EXPECT_EQ(r.count(event_kind::cache_read_failed), 1u);
  EXPECT_EQ(r.count(event_kind::lost), 0u);
  EXPECT_EQ(r.last()->kind, event_kind::ready);
  EXPECT_FALSE(r.last()->cause);
  auto const read_failed = r.last(event_kind::cache_read_failed);
  ASSERT_TRUE(read_failed);
  EXPECT_EQ(read_failed->source, "cache");
  EXPECT_EQ(read_failed->cause->code, redoubt::errc::connection_refused);
  EXPECT_FALSE(r.last(event_kind::lost));
  r.clear();
  EXPECT_EQ(r.count(), 0u);
  EXPECT_FALSE(r.last());
}

TEST(recorder, is_bounded_but_counts_on) {
  recorder r(3);
  for (int i = 0; i < 10; ++i) r.on(event{event_kind::connecting});
  r.on(event{event_kind::ready});
  EXPECT_EQ(r.entries().size(), 3u);
  EXPECT_EQ(r.entries().back().kind, event_kind::ready);
  EXPECT_EQ(r.count(event_kind::connecting), 10u);
}

TEST(recorder, may_be_used_from_several_threads) {
  recorder r(16);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&r] {
      for (int i = 0; i < 1000; ++i) r.on(event{event_kind::late_reply_discarded});
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(r.count(event_kind::late_reply_discarded), 4000u);
}

}  // namespace
