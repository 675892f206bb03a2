// SPDX-License-Identifier: BSL-1.0
//
// Bytes to replies, cut anywhere. reader_hostile_test.cpp has what a peer must not be able to do to us.
#include <redoubt/resp/reader.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/random.hpp>

namespace {

using namespace std::string_view_literals;

using redoubt::errc;
using redoubt::reader;
using redoubt::reply;
using redoubt::server_errc;
using redoubt::status_line;
using replies = std::vector<reply>;

reply one(std::string_view bytes) {
  reader r;
  r.feed(bytes);
  auto out = r.next();
  EXPECT_TRUE(out) << r.error_text();
  EXPECT_TRUE(r.at_boundary());
  return out.value_or(reply());
}

/// Feeds in pieces; takes what is there after each.
replies all(std::string_view bytes, std::vector<std::size_t> const& pieces) {
  reader r;
  replies out;
  auto const feed = [&](std::size_t size) {
    r.feed(bytes.substr(0, size));
    bytes.remove_prefix(std::min(size, bytes.size()));
    while (auto next = r.next()) out.push_back(std::move(*next));
    EXPECT_EQ(r.error(), errc::unspecified) << r.error_text();
  };
  for (auto const size : pieces) feed(size);
  feed(bytes.size());
  EXPECT_TRUE(r.at_boundary());
  EXPECT_EQ(r.buffered(), 0u);
  return out;
}

std::string wire_of(reply const& r) {
  if (r.is_nil()) return "$-1\r\n";
  if (r.is_integer()) return ":" + std::to_string(r.as_integer()) + "\r\n";
  if (r.is_status()) return "+" + std::string(r.as_string()) + "\r\n";
  if (r.is_error()) return "-" + r.as_error().text + "\r\n";
  if (r.is_string())
    return "$" + std::to_string(r.as_string().size()) + "\r\n" + std::string(r.as_string()) + "\r\n";
  std::string out = "*" + std::to_string(r.as_array().size()) + "\r\n";
  for (auto const& element : r.as_array()) out += wire_of(element);
  return out;
}

/// A random reply; strings contain what looks like syntax.
reply some(redoubt::random_source& random, int depth) {
  static constexpr std::string_view pieces[] = {"\r\n",   "$5\r\n", "*2\r\n", "-ERR", "+",
                                                ":1\r\n", "abc",    "\r",     "\n"};
  switch (random.below(depth > 0 ? 8 : 6)) {
    case 0: return reply();
    case 1: return reply(static_cast<std::int64_t>(random()));
    case 2: return reply(status_line{random.chance(1, 2) ? "OK" : ""});
    case 3: return reply(redoubt::parse_server_error("WRONGTYPE Operation against a key"));
    case 4: return reply(std::string());
    case 5: {
      std::string text;
      for (auto n = random.below(6); n > 0; --n) text += pieces[random.below(std::size(pieces))];
      text += static_cast<char>(random.below(256));
      return reply(std::move(text));
    }
    default: {
      reply::array elements;
      for (auto n = random.below(4); n > 0; --n) elements.push_back(some(random, depth - 1));
      return reply(std::move(elements));
    }
  }
}

TEST(reader, reads_every_kind) {
  EXPECT_EQ(one("+OK\r\n"), reply(status_line{"OK"}));
  EXPECT_EQ(one("+\r\n"), reply(status_line{""}));
  EXPECT_EQ(one(":0\r\n"), reply(std::int64_t{0}));
  EXPECT_EQ(one(":-1\r\n"), reply(std::int64_t{-1}));
  EXPECT_EQ(one(":9223372036854775807\r\n"), reply(std::int64_t{9223372036854775807}));
  EXPECT_EQ(one(":-9223372036854775808\r\n"), reply(std::int64_t{-9223372036854775807 - 1}));
  EXPECT_EQ(one("$0\r\n\r\n"), reply(std::string()));
  EXPECT_EQ(one("$4\r\na\r\nb\r\n"), reply(std::string("a\r\nb")));
  EXPECT_EQ(one("*0\r\n"), reply(reply::array{}));
  EXPECT_EQ(one("*2\r\n:1\r\n*1\r\n$-1\r\n"),
            reply(reply::array{reply(std::int64_t{1}), reply(reply::array{reply()})}));
}

TEST(reader, C64_minus_one_is_nil_for_strings_and_arrays) {
  EXPECT_TRUE(one("$-1\r\n").is_nil());
  EXPECT_TRUE(one("*-1\r\n").is_nil());
}

TEST(reader, errors_are_classified) {
  auto const e = one("-READONLY You can't write against a read only replica.\r\n");
  ASSERT_TRUE(e.is_error());
  EXPECT_EQ(e.as_error().code, server_errc::readonly);
  EXPECT_EQ(e.as_error().text, "READONLY You can't write against a read only replica.");
}

TEST(reader, C72_strings_of_any_bytes_come_back_as_they_are) {
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  EXPECT_EQ(one(wire_of(reply(every))).as_string(), every);
  std::string const big(1 << 20, '\r');
  EXPECT_EQ(one(wire_of(reply(big))).as_string(), big);
}

TEST(reader, waits_for_the_last_byte) {
  std::string_view const whole = "*2\r\n$3\r\nabc\r\n:1\r\n";
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    reader r;
    EXPECT_TRUE(r.at_boundary());
    r.feed(whole.substr(0, cut));
    EXPECT_FALSE(r.next()) << cut;
    EXPECT_EQ(r.error(), errc::unspecified);
    EXPECT_EQ(r.at_boundary(), cut == 0) << cut;
    r.feed(whole.substr(cut));
    EXPECT_TRUE(r.next()) << cut;
    EXPECT_TRUE(r.at_boundary());
  }
}

TEST(reader, C67_every_cut_gives_the_same_replies) {
  redoubt::random_source random(67);
  replies wanted;
  std::string stream;
  for (int i = 0; i < 120; ++i) {
    wanted.push_back(some(random, 5));
    stream += wire_of(wanted.back());
  }
  ASSERT_GT(stream.size(), 2000u);
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) ASSERT_EQ(all(stream, {cut}), wanted) << cut;
  EXPECT_EQ(all(stream, std::vector<std::size_t>(stream.size(), 1)), wanted) << "byte by byte";
}

TEST(reader, C67_random_pieces_give_the_same_replies) {
  redoubt::random_source random(670);
  replies wanted;
  std::string stream;
  for (int i = 0; i < 500; ++i) {
    wanted.push_back(i == 250 ? reply(std::string(1 << 20, 'x')) : some(random, 7));
    stream += wire_of(wanted.back());
  }
  for (int round = 0; round < 10; ++round) {
    std::vector<std::size_t> pieces;
    for (std::size_t sum = 0; sum < stream.size(); sum += pieces.back())
      pieces.push_back(1 + random.below(64 << 10));
    ASSERT_EQ(all(stream, pieces), wanted) << round;
  }
}

TEST(reader, the_buffered_bytes_are_those_of_replies_not_taken) {
  reader r;
  r.feed("+OK\r\n+OK\r\n+O");
  EXPECT_EQ(r.buffered(), 12u);
  EXPECT_TRUE(r.next());
  EXPECT_EQ(r.buffered(), 7u);
  EXPECT_TRUE(r.next());
  EXPECT_FALSE(r.next());
  EXPECT_FALSE(r.at_boundary());
  r.feed("K\r\n");
  EXPECT_TRUE(r.next());
  EXPECT_EQ(r.buffered(), 0u);
}

TEST(reader, moves) {
  reader a;
  a.feed("*2\r\n:1\r\n");
  EXPECT_FALSE(a.next());
  reader b(std::move(a));
  b.feed(":2\r\n");
  EXPECT_EQ(b.next(), reply(reply::array{reply(std::int64_t{1}), reply(std::int64_t{2})}));
  b = reader();
  b.feed("+OK\r\n");
  EXPECT_EQ(b.next(), reply(status_line{"OK"}));
}

TEST(reader, feeding_nothing_is_harmless) {
  reader r;
  r.feed({});
  EXPECT_FALSE(r.next());
  EXPECT_TRUE(r.at_boundary());
  EXPECT_EQ(r.error(), errc::unspecified);
}

TEST(reader, escaped_shows_printable_characters_only) {
  EXPECT_EQ(redoubt::escaped("abc", 16), "abc");
  EXPECT_EQ(redoubt::escaped("a\r\n\0b"sv.substr(0, 5), 16), "a\\x0d\\x0a\\x00b");
  EXPECT_EQ(redoubt::escaped("\"\\\x7f\xff", 16), "\\x22\\x5c\\x7f\\xff");
  EXPECT_EQ(redoubt::escaped("0123456789", 4), "0123");
}

}  // namespace
