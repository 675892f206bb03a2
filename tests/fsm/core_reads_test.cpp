// SPDX-License-Identifier: BSL-1.0
//
// How much is read at once, by what arrived last.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scripted_link.hpp"

namespace {

using test::scripted_link;
using test::ticket;

constexpr std::size_t kib = 1024;

std::string bulk(std::size_t size) {
  return "$" + std::to_string(size) + "\r\n" + std::string(size, 'v') + "\r\n";
}

/// The size of the read that follows when `bytes`, at the beginning of the answers to `calls` calls, arrive.
std::size_t read_size_after(std::string const& bytes, int calls) {
  scripted_link l;
  l.make_idle();
  std::vector<ticket> waiting;
  for (int i = 0; i < calls; ++i) waiting.push_back(l.get("k"));
  l.written();
  while (l.writing()) l.written();
  l.receive(bytes);
  return l.core->read_size();
}

TEST(core_reads, small_replies_are_read_in_small_pieces) {
  std::string many;
  for (int i = 0; i < 70; ++i) many += bulk(100);
  EXPECT_EQ(read_size_after(bulk(100), 1), 8 * kib);
  EXPECT_EQ(read_size_after(many, 70), 8 * kib);
  EXPECT_EQ(read_size_after("$100\r\nthe beginning", 1), 8 * kib);
}

TEST(core_reads, large_replies_are_read_in_larger_pieces) {
  EXPECT_EQ(read_size_after(bulk(10 * kib), 1), 16 * kib);
  EXPECT_EQ(read_size_after(bulk(10 * kib) + bulk(10 * kib).substr(0, 6 * kib), 2), 16 * kib);
}

TEST(core_reads, the_inside_of_a_large_reply_is_read_in_the_largest_pieces) {
  EXPECT_EQ(read_size_after(bulk(1024 * kib).substr(0, 8 * kib), 1), 64 * kib);
  EXPECT_EQ(read_size_after("*1000\r\n" + bulk(3 * kib), 1), 64 * kib) << "an array counts as one reply";
}

TEST(core_reads, a_new_connection_begins_with_small_pieces) {
  scripted_link l;
  EXPECT_EQ(l.core->read_size(), 8 * kib);
}

}  // namespace
