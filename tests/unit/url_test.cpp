// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/options.hpp>

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <redoubt/core/random.hpp>

namespace {

using redoubt::errc;
using redoubt::parse_url;

TEST(url, C71_characters_that_must_be_encoded_are_decoded) {
  auto const u = parse_url("redis://u:p%40s%23%2F%25%2B@h:6380/2");
  ASSERT_TRUE(u) << u.error();
  EXPECT_EQ(u->user, "u");
  EXPECT_EQ(u->password, "p@s#/%+");
  EXPECT_EQ(u->host, "h");
  EXPECT_EQ(u->port, 6380);
  EXPECT_EQ(u->database, 2u);
}

TEST(url, C71_plus_and_equals_stay_what_they_are) {
  auto const u = parse_url("redis://:abc+def=@h");
  ASSERT_TRUE(u) << u.error();
  EXPECT_EQ(u->user, "");
  EXPECT_EQ(u->password, "abc+def=");
  EXPECT_EQ(u->host, "h");
  EXPECT_EQ(u->port, 0);
}

TEST(url, C71_ipv6) {
  auto const u = parse_url("redis://[::1]:6379");
  ASSERT_TRUE(u) << u.error();
  EXPECT_EQ(u->host, "::1");
  EXPECT_EQ(u->port, 6379);
  auto const without_port = parse_url("redis://:pw@[fe80::1%25eth0]/3");
  ASSERT_TRUE(without_port) << without_port.error();
  EXPECT_EQ(without_port->host, "fe80::1%eth0") << "the zone, encoded as RFC 6874 has it";
  EXPECT_EQ(without_port->database, 3u);
}

TEST(url, every_byte_of_a_password_can_be_written) {
  std::string every;
  std::string encoded;
  for (int c = 0; c < 256; ++c) {
    every += static_cast<char>(c);
    constexpr std::string_view digits = "0123456789abcdef";
    encoded += '%';
    encoded += digits[static_cast<std::size_t>(c) / 16];
    encoded += digits[static_cast<std::size_t>(c) % 16];
  }
  auto const u = parse_url("redis://" + encoded + ":" + encoded + "@h");
  ASSERT_TRUE(u) << u.error();
  EXPECT_EQ(u->user, every);
  EXPECT_EQ(u->password, every);
}

TEST(url, plain_forms) {
  EXPECT_EQ(parse_url("redis://localhost")->host, "localhost");
  EXPECT_EQ(parse_url("redis://localhost/")->database, 0u);
  EXPECT_EQ(parse_url("redis://10.0.0.1:1")->port, 1);
  EXPECT_EQ(parse_url("redis://10.0.0.1:65535")->port, 65535);
  EXPECT_EQ(parse_url("redis://h/15")->database, 15u);
  EXPECT_EQ(parse_url("redis://h%6Fst")->host, "host");
  EXPECT_EQ(parse_url("redis://@h")->host, "h");
}

TEST(url, with_tls) {
  auto const u = parse_url("rediss://ann:pw@cache.test:6380/3");
  ASSERT_TRUE(u) << u.error();
  EXPECT_TRUE(u->tls);
  EXPECT_EQ(u->host, "cache.test");
  EXPECT_EQ(u->port, 6380);
  EXPECT_EQ(u->user, "ann");
  EXPECT_EQ(u->database, 3u);
  EXPECT_FALSE(parse_url("redis://cache.test")->tls);
  EXPECT_FALSE(parse_url("unix:///a")->tls);
}

TEST(url, unix_sockets) {
  auto const u = parse_url("unix:///run/redis%20one.sock?db=5");
  ASSERT_TRUE(u) << u.error();
  EXPECT_EQ(u->unix_path, "/run/redis one.sock");
  EXPECT_EQ(u->database, 5u);
  EXPECT_EQ(u->host, "");
  EXPECT_EQ(parse_url("unix:///a")->database, 0u);
  EXPECT_EQ(parse_url("unix:///a%3Fdb=1")->unix_path, "/a?db=1");
}

struct bad {
  std::string_view url;
  std::string_view part;  ///< What the message must name.
};

constexpr std::string_view secret = "S3cr3t";

// A secret stands in each of them that has a place for one.
constexpr bad bad_urls[] = {
    {"", "scheme"},
    {"localhost", "scheme"},
    {"localhost:6379", "scheme"},
    {"http://h", "scheme"},
    {"redis:/h", "scheme"},
    {"redis:h", "scheme"},
    {"//u:S3cr3t@h", "scheme"},
    {"REDIS://u:S3cr3t@h", "scheme"},
    {"rediss://u:S3cr3t@h:0", "port"},
    {"rediss://u:S3cr3t@h?tls=no", "position"},
    {"rediss:///run/S3cr3t", "host"},
    {"redisss://u:S3cr3t@h", "scheme"},
    {"redis://", "host"},
    {"redis:///0", "host"},
    {"redis://u:S3cr3t@", "host"},
    {"redis://u:S3cr3t@/0", "host"},
    {"redis://u:S3cr3t@:6379", "host"},
    {"redis://:6379", "host"},
    {"redis://u:S3cr3t@h:", "port"},
    {"redis://u:S3cr3t@h:0", "port"},
    {"redis://u:S3cr3t@h:65536", "port"},
    {"redis://u:S3cr3t@h:-1", "port"},
    {"redis://u:S3cr3t@h:+1", "port"},
    {"redis://u:S3cr3t@h:6379x", "port"},
    {"redis://u:S3cr3t@h:redis", "port"},
    {"redis://u:S3cr3t@[::1]:", "port"},
    {"redis://u:S3cr3t@[::1]:0", "port"},
    {"redis://u:S3cr3t@[::1", "host"},
    {"redis://u:S3cr3t@[::1]6379", "host"},
    {"redis://u:S3cr3t@[]:6379", "host"},
    {"redis://u:S3cr3t@[host]:6379", "host"},
    {"redis://u:S3cr3t@[]", "host"},
    {"redis://u:S3cr3t@::1", "host"},
    {"redis://u:S3cr3t@h%2Fx", "host"},
    {"redis://u:S3cr3t@h%40x", "host"},
    {"redis://u:S3cr3t@h%20x", "host"},
    {"redis://u:S3cr3t@h%00x", "host"},
    {"redis://u:S3cr3t@h%4", "host"},
    {"redis://u:S3cr3t@h%zz", "host"},
    {"redis://u:S3cr3t@h/x", "database"},
    {"redis://u:S3cr3t@h/-1", "database"},
    {"redis://u:S3cr3t@h/1/2", "database"},
    {"redis://u:S3cr3t@h/4294967296", "database"},
    {"redis://u:S3cr3t@h/2147483648", "database"},
    {"redis://u:S3cr3t@h?db=1", "'?' at position"},
    {"redis://u:S3cr3t@h/0?x=1", "'?' at position"},
    {"redis://u:S3cr3t#x@h/0", "'#' at position"},
    {"redis://u:#S3cr3t@h/0", "'#' at position"},
    {"redis://u:S3cr3t@h#", "'#' at position"},
    {"redis://u:S3cr3t @h", "position"},
    {"redis://u:S3cr3t\n@h", "position"},
    {"redis://u:S3cr3t\x7f@h", "position"},
    {" redis://u:S3cr3t@h", "position"},
    {"redis://u:S3cr3t@h ", "position"},
    {"redis://u:S3cr3t@x@h", "'@'"},
    {"redis://u:S3cr3t/x@h", "'/'"},
    {"redis://S3cr3t@h", "user name"},
    {"redis://u%4:S3cr3t@h", "user name"},
    {"redis://u:S3cr3t%@h", "password"},
    {"redis://u:S3cr3t%4@h", "password"},
    {"redis://u:S3cr3t%4x@h", "password"},
    {"redis://u:S3cr3t%x4@h", "password"},
    {"redis://u:@h", "password"},
    {"redis://:@h", "password"},
    // The host was forgotten, so the password stands where a port belongs.
    {"redis://u:S3cr3t", "port"},
    {"redis://u:S3cr3t/0", "port"},
    {"redis://:S3cr3t", "host"},
    {"unix://", "path"},
    {"unix://run/redis.sock", "path"},
    {"unix://u:S3cr3t@/run/redis.sock", "path"},
    {"unix:///a%4", "path"},
    {"unix:///a%00b", "path"},
    {"unix:///a?", "?db="},
    {"unix:///a?db=", "?db="},
    {"unix:///a?db=x", "?db="},
    {"unix:///a?db=1&x=2", "?db="},
    {"unix:///a?pw=S3cr3t", "?db="},
    {"unix:///"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaa",
     "107"},
};

TEST(url, C71_what_is_wrong_is_named_and_no_secret_is_shown) {
  static_assert(std::size(bad_urls) > 40);
  for (auto const& b : bad_urls) {
    auto const u = parse_url(b.url);
    ASSERT_FALSE(u) << b.url;
    EXPECT_EQ(u.error().code, errc::bad_option) << b.url;
    EXPECT_EQ(u.error().effect, redoubt::effect::none);
    auto const& note = u.error().detail->note;
    EXPECT_TRUE(note.starts_with("url: ")) << note;
    EXPECT_NE(note.find(b.part), std::string::npos) << b.url << " gave: " << note;
    EXPECT_EQ(u.error().message().find(secret), std::string::npos)
        << b.url << " gave: " << u.error().message();
  }
}

TEST(url, the_position_is_the_one_in_the_text) {
  std::string_view const url = "redis://:a#b@h/0";
  EXPECT_NE(parse_url(url).error().message().find("position " + std::to_string(url.find('#'))),
            std::string::npos);
  std::string_view const other = "redis://h/0?x";
  EXPECT_NE(parse_url(other).error().message().find("position " + std::to_string(other.find('?'))),
            std::string::npos);
}

TEST(url, random_text_never_shows_its_password) {
  redoubt::random_source random(71);
  constexpr std::string_view pieces[] = {"redis://", "unix://", "u", ":", "@",        "/",   "?",
                                         "#",        "[",       "]", "%", "%41",      "::1", "6379",
                                         "h",        "db=",     " ", "x", "rediss://"};
  for (int round = 0; round < 20'000; ++round) {
    std::string url = random.chance(3, 4) ? "redis://" : "";
    auto const at = random.below(8);
    for (std::uint64_t i = 0; i < 8; ++i) {
      if (i == at) {
        // As a password that is guarded or not; it must be in no message wherever it landed.
        url += random.chance(1, 2) ? ":" : "";
        url += secret;
        url += random.chance(1, 2) ? "@" : "";
      }
      url += pieces[random.below(std::size(pieces))];
    }
    auto const u = parse_url(url);
    if (u) continue;
    ASSERT_EQ(u.error().message().find(secret), std::string::npos) << url << " gave: " << u.error().message();
  }
}

}  // namespace
