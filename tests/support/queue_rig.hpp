// SPDX-License-Identifier: BSL-1.0
//
// A call queue with a clock that a test moves by hand. Every step checks the queue's invariants.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/fsm/call_queue.hpp>

namespace test {

struct queue_rig {
  using tags = std::vector<std::uint64_t>;

  explicit queue_rig(redoubt::call_queue_options options = {}) : q(options) {}

  redoubt::call_queue q;
  redoubt::time_point now{std::chrono::hours(1)};
  std::vector<redoubt::ended_call> ended;

  /// The call ends `limit` from now; `own`: as if its caller had given that budget.
  redoubt::call_id submit(std::uint64_t tag, std::size_t bytes = 10, std::uint32_t replies = 1,
                          redoubt::duration limit = std::chrono::milliseconds(150), bool own = false) {
    auto const id = q.submit({tag, bytes, replies, redoubt::deadline(now + limit), own}, now);
    checked();
    return id;
  }

  tags take(std::size_t bytes_max = 64 * 1024) {
    tags out;
    q.take_batch(bytes_max, now, out);
    checked();
    return out;
  }

  void written(std::size_t bytes) {
    q.on_written(bytes, now);
    checked();
  }

  void bytes() {
    q.on_bytes(now);
    checked();
  }

  redoubt::matched_reply reply() {
    q.on_bytes(now);
    auto const out = q.on_reply();
    checked();
    return out;
  }

  /// Moves time in steps of at most one tick, so that every deadline is met exactly.
  void advance(redoubt::duration d) {
    auto const end = now + d;
    while (now < end) {
      now = std::min(end, now + redoubt::deadline_wheel::tick);
      q.on_time(now, redoubt::phase::queue, ended);
      checked();
    }
  }

  std::optional<redoubt::ended_call> cancel(redoubt::call_id id) {
    auto const out = q.cancel(id, redoubt::phase::queue);
    checked();
    return out;
  }

  void ready() {
    q.on_ready(now);
    checked();
  }

  void lose() {
    q.on_lost(ended);
    checked();
  }

  /// Submits, takes and writes one call.
  redoubt::call_id sent(std::uint64_t tag, std::size_t size = 10, std::uint32_t replies = 1) {
    auto const id = submit(tag, size, replies);
    EXPECT_EQ(take(), tags{tag});
    written(size);
    return id;
  }

  /// The tags of what ended so far, which is forgotten.
  tags ended_tags() {
    tags out;
    for (auto const& e : ended) out.push_back(e.tag);
    ended.clear();
    return out;
  }

  void checked() const { ASSERT_TRUE(q.check()); }
};

}  // namespace test
