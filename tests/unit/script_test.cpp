// SPDX-License-Identifier: BSL-1.0
#include <redoubt/resp/script.hpp>

#include <string>

#include <gtest/gtest.h>

namespace {

using redoubt::args;
using redoubt::command;
using redoubt::eval_command;
using redoubt::keys;
using redoubt::script;

TEST(script, sha1_of_known_texts) {
  EXPECT_EQ(script("").sha1(), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(script("abc").sha1(), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(script("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").sha1(),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(script(std::string(1'000'000, 'a')).sha1(), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  EXPECT_EQ(script("return 1").sha1(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db")
      << "as SCRIPT LOAD answers";
}

TEST(script, lengths_around_the_block_size_differ) {
  std::string last;
  for (std::size_t n = 50; n < 140; ++n) {
    auto const sha = script(std::string(n, 'x')).sha1();
    EXPECT_EQ(sha.size(), 40u);
    EXPECT_NE(sha, last);
    last = sha;
  }
}

TEST(script, copies_share_the_text) {
  script const a("return 1");
  script const b = a;  // NOLINT: the copy is the subject
  EXPECT_EQ(&a.body(), &b.body());
}

TEST(script, is_called_by_hash_first_and_by_body_after) {
  script const s("return 1");
  auto const by_hash = eval_command(s, keys("k1", "k2"), args("a", 2, 0.5, true), "", true);
  EXPECT_EQ(by_hash.wire(), command("EVALSHA", s.sha1(), 2, "k1", "k2", "a", 2, 0.5, true).wire());
  auto const by_body = eval_command(s, keys("k1", "k2"), args("a", 2, 0.5, true), "", false);
  EXPECT_EQ(by_body.wire(), command("EVAL", s.body(), 2, "k1", "k2", "a", 2, 0.5, true).wire());
}

TEST(script, the_prefix_is_put_before_each_key_and_no_argument) {
  script const s("return 1");
  auto const c = eval_command(s, keys("k1", 42), args("k1"), "shop:", true);
  EXPECT_EQ(c.wire(), command("EVALSHA", s.sha1(), 2, "shop:k1", "shop:42", "k1").wire());
}

TEST(script, may_have_neither_keys_nor_arguments) {
  script const s("return 1");
  EXPECT_EQ(eval_command(s, keys(), args(), "shop:", true).wire(), command("EVALSHA", s.sha1(), 0).wire());
}

TEST(script, C72_keys_and_arguments_of_any_bytes) {
  script const s("return 1");
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  auto const c = eval_command(s, keys(every), args(every, ""), "\r\n", true);
  EXPECT_EQ(c[3], "\r\n" + every);
  EXPECT_EQ(c[4], every);
  EXPECT_EQ(c[5], "");
  EXPECT_EQ(c.size(), 6u);
}

}  // namespace
