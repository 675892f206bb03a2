// SPDX-License-Identifier: BSL-1.0
//
// Peers that are broken, hostile, or not Redis at all: refused soon, in bounded memory and time.
#include <redoubt/resp/reader.hpp>

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "heap.hpp"

namespace {

using redoubt::errc;
using redoubt::reader;
using redoubt::reader_options;

struct verdict {
  errc code = errc::unspecified;
  std::string text;
  std::size_t fed = 0;     ///< Bytes that were needed to come to it.
  std::size_t memory = 0;  ///< Most memory held on the way, beyond what was held before.
};

/// Feeds `bytes`, then more and more of `filler`, until the reader gives up or `limit` bytes were fed.
verdict judge(std::string_view bytes, std::string_view filler = {}, std::size_t limit = 0,
              reader_options o = {}, std::size_t piece = 16 * 1024) {
  auto const before = test::heap_in_use();
  reader r(o);
  verdict out;
  auto const feed = [&](std::string_view some) {
    r.feed(some);
    out.fed += some.size();
    for (;;) {
      auto const next = r.next();
      out.memory = std::max(out.memory, test::heap_in_use() - std::min(before, test::heap_in_use()));
      if (!next) break;
    }
  };
  while (!bytes.empty() && r.error() == errc::unspecified) {
    feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  while (out.fed < limit && r.error() == errc::unspecified) feed(filler);
  out.code = r.error();
  out.text = r.error_text();
  return out;
}

constexpr std::size_t mib = 1 << 20;

TEST(reader_hostile, C64_headers_that_lie) {
  std::string const filler(16 * 1024, 'x');
  for (std::string_view header : {
           "*4294967295\r\n",
           "*2147483648\r\n",
           "*9223372036854775807\r\n",
           "*99999999999999999999\r\n",
           "*-2\r\n",
           "*\r\n",
           "*x\r\n",
           "*1x\r\n",
           "*+1\r\n",
           "* 1\r\n",
           "$9223372036854775807\r\n",
           "$9223372036854775806\r\n",
           "$18446744073709551615\r\n",
           "$99999999999999999999\r\n",
           "$-2\r\n",
           "$+5\r\n",
           "$\r\n",
           "$x\r\n",
           "$5x\r\n",
           "$ 5\r\n",
           ":99999999999999999999\r\n",
           ":9223372036854775808\r\n",
           ":\r\n",
           ":x\r\n",
           ":1x\r\n",
           ":1.5\r\n",
           ":--1\r\n",
           "%4294967295\r\n",
           "~4294967295\r\n",
           ">4294967295\r\n",
       }) {
    for (std::string_view before : {"", "*1\r\n", "*2\r\n$3\r\nabc\r\n", "*1\r\n*1\r\n*1\r\n"}) {
      auto const v = judge(std::string(before) + std::string(header), filler, 4 * mib);
      EXPECT_TRUE(v.code == errc::protocol_error || v.code == errc::reply_too_large) << before << header;
      EXPECT_LT(v.fed, 64 * 1024u) << before << header;
      EXPECT_LT(v.memory, mib) << before << header;
      EXPECT_FALSE(v.text.empty());
    }
  }
}

TEST(reader_hostile, C64_arrays_that_announce_more_than_the_bound) {
  EXPECT_EQ(judge("*1048577\r\n").code, errc::reply_too_large);
  EXPECT_EQ(judge("*1048576\r\n").code, errc::unspecified);
  EXPECT_LT(judge("*1048576\r\n").memory, mib) << "an announcement is not data";
  EXPECT_EQ(judge("*4\r\n", {}, 0, {.array_elements = 3}).code, errc::reply_too_large);
  EXPECT_EQ(judge("*3\r\n", {}, 0, {.array_elements = 3}).code, errc::unspecified);
}

TEST(reader_hostile, C64_nesting_has_a_bound) {
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "*1\r\n";
  auto const v = judge(deep);
  EXPECT_EQ(v.code, errc::protocol_error);
  EXPECT_LE(v.fed, 16 * 1024u);
  EXPECT_LT(v.memory, mib);
  for (std::size_t bound = 1; bound <= 7; ++bound) {
    std::string at;
    for (std::size_t i = 0; i < bound; ++i) at += "*1\r\n";
    EXPECT_EQ(judge(at + ":1\r\n", {}, 0, {.depth = bound}).code, errc::unspecified) << bound;
    EXPECT_EQ(judge(at + "*1\r\n:1\r\n", {}, 0, {.depth = bound}).code, errc::protocol_error) << bound;
  }
}

TEST(reader_hostile, C63_a_string_above_the_bound_is_refused_by_its_announcement) {
  std::string const filler(16 * 1024, 'x');
  reader_options const o{.reply_bytes = 8 * mib};
  for (std::string_view before : {"", "*2\r\n", "*2\r\n:1\r\n", "*2\r\n*1\r\n"}) {
    auto const v = judge(std::string(before) + "$67108864\r\n", filler, 100 * mib, o);
    EXPECT_EQ(v.code, errc::reply_too_large) << before;
    EXPECT_LT(v.memory, mib) << before;
    EXPECT_LT(v.fed, 64 * 1024u) << before;
    EXPECT_NE(v.text.find("67108864"), std::string::npos) << v.text;
    EXPECT_NE(v.text.find("8388608"), std::string::npos) << v.text;
  }
}

TEST(reader_hostile, C63_the_bound_covers_the_whole_reply) {
  reader_options const o{.reply_bytes = 10'000};
  EXPECT_EQ(judge("$9984\r\n" + std::string(9984, 'x') + "\r\n", {}, 0, o).code, errc::unspecified);
  EXPECT_EQ(judge("$9985\r\n" + std::string(9985, 'x') + "\r\n", {}, 0, o).code, errc::reply_too_large);
  // Many small strings cannot pass what one large one cannot, and neither can many empty arrays or nils.
  for (std::string_view element : {"$1\r\nx\r\n", ":1\r\n", "$-1\r\n", "*0\r\n", "+\r\n", "*-1\r\n"}) {
    auto const v = judge("*1000000\r\n", element, 10 * mib, o);
    EXPECT_EQ(v.code, errc::reply_too_large) << element;
    EXPECT_LT(v.memory, mib) << element;
    EXPECT_LT(v.fed, 20'000u) << element;
  }
  // It is counted anew for each reply.
  std::string many;
  for (int i = 0; i < 100; ++i) many += "$5000\r\n" + std::string(5000, 'x') + "\r\n";
  EXPECT_EQ(judge(many, {}, 0, o).code, errc::unspecified);
}

TEST(reader_hostile, lines_that_never_end) {
  std::string const filler(16 * 1024, 'x');
  for (std::string_view start : {"+", "-", "*1\r\n+", "*2\r\n:1\r\n-", "+abc\n", "-\r"}) {
    auto const v = judge(start, filler, 80 * mib);
    EXPECT_EQ(v.code, errc::reply_too_large) << start;
    EXPECT_LT(v.fed, 2 * mib) << start;
    EXPECT_LT(v.memory, 8 * mib) << start;
  }
  std::string const digits(16 * 1024, '1');
  for (std::string_view start : {":", "$", "*", "*1\r\n:", "*1\r\n$", "*1\r\n*", "$5\n"}) {
    auto const v = judge(start, digits, 80 * mib);
    EXPECT_EQ(v.code, errc::protocol_error) << start;
    EXPECT_LT(v.fed, 64 * 1024u) << start;
    EXPECT_LT(v.memory, mib) << start;
  }
}

TEST(reader_hostile, a_number_in_pieces_is_waited_for) {
  EXPECT_EQ(judge(":12345678901234567\r\n", {}, 0, {}, 1).code, errc::unspecified);
  EXPECT_EQ(judge("$000000000000000000000005\r\nabcde\r\n", {}, 0, {}, 1).code, errc::protocol_error)
      << "hiredis accepts no leading zeros";
}

TEST(reader_hostile, C66_not_a_redis_server) {
  auto const v = judge("HTTP/1.1 400 Bad Request\r\nServer: nginx\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(v.code, errc::protocol_error);
  EXPECT_EQ(v.text, "unexpected first byte 0x48 in \"HTTP/1.1 400 Bad\"");
  auto const tls = judge(std::string_view("\x15\x03\x01\x00\x02\x02\x50", 7));
  EXPECT_EQ(tls.code, errc::protocol_error);
  EXPECT_EQ(tls.text, "unexpected first byte 0x15 in \"\\x15\\x03\\x01\\x00\\x02\\x02P\"");
}

TEST(reader_hostile, C66_any_other_first_byte_is_refused_at_once) {
  for (int c = 0; c < 256; ++c) {
    std::string const first(1, static_cast<char>(c));
    bool const ours = c == '+' || c == '-' || c == ':' || c == '$' || c == '*';
    EXPECT_EQ(judge(first).code, ours ? errc::unspecified : errc::protocol_error) << c;
    EXPECT_EQ(judge("*1\r\n" + first).code, ours ? errc::unspecified : errc::protocol_error)
        << "inside: " << c;
  }
}

TEST(reader_hostile, resp3_is_not_the_contract) {
  for (std::string_view text :
       {"_\r\n", "#t\r\n", ",1.5\r\n", "(123\r\n", "=5\r\ntxt:a\r\n", "%1\r\n+a\r\n+b\r\n", "~1\r\n+a\r\n",
        ">2\r\n+invalidate\r\n+k\r\n", "|1\r\n+a\r\n+b\r\n", "!5\r\nERR x\r\n"}) {
    EXPECT_EQ(judge(text).code, errc::protocol_error) << text;
    EXPECT_EQ(judge("*1\r\n" + std::string(text)).code, errc::protocol_error) << text;
  }
}

TEST(reader_hostile, an_error_is_final) {
  reader r;
  r.feed("+OK\r\n!");
  EXPECT_TRUE(r.next());
  EXPECT_FALSE(r.next());
  EXPECT_EQ(r.error(), errc::protocol_error);
  auto const text = r.error_text();
  for (int i = 0; i < 100; ++i) r.feed(std::string(mib, '+') + "\r\n+OK\r\n");
  EXPECT_FALSE(r.next());
  EXPECT_EQ(r.error(), errc::protocol_error);
  EXPECT_EQ(r.error_text(), text);
  EXPECT_LT(r.buffered(), 64u) << "what comes after an error is not kept";
}

TEST(reader_hostile, replies_before_the_error_are_delivered) {
  reader r;
  r.feed("+A\r\n:2\r\nHTTP");
  EXPECT_TRUE(r.next());
  EXPECT_EQ(r.error(), errc::unspecified);
  EXPECT_TRUE(r.next());
  EXPECT_FALSE(r.next());
  EXPECT_EQ(r.error(), errc::protocol_error);
}

TEST(reader_hostile, a_large_reply_is_not_held_after_it_was_taken) {
  auto const before = test::heap_in_use();
  reader r;
  r.feed("$33554432\r\n" + std::string(32 * mib, 'x') + "\r\n+O");
  EXPECT_TRUE(r.next());
  EXPECT_FALSE(r.next());
  r.feed("K\r\n");
  EXPECT_TRUE(r.next());
  // hiredis lets go of its buffer once a kilobyte of it has been read and the rest is empty.
  for (int i = 0; i < 300; ++i) {
    r.feed("+OK\r\n");
    EXPECT_TRUE(r.next());
  }
  EXPECT_LT(test::heap_in_use() - before, 2 * mib);
}

}  // namespace
