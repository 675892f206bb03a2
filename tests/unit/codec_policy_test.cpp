// SPDX-License-Identifier: BSL-1.0
//
// Codecs, keys, and the lives of entries.
#include <redoubt/policy/cache_aside_options.hpp>
#include <redoubt/policy/codec.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/random.hpp>

namespace {

using namespace std::chrono_literals;
using redoubt::cache_key;
using redoubt::codec;
using redoubt::duration;
using redoubt::random_source;

struct money {
  long cents = 0;
  friend bool operator==(money, money) = default;
};
struct no_codec {};

}  // namespace

template <>
struct redoubt::codec<money> {
  static std::string encode(money const& m) { return std::to_string(m.cents) + "c"; }
  static std::optional<money> decode(std::string_view bytes) {
    if (!bytes.ends_with('c')) return std::nullopt;
    auto const cents = redoubt::codec<long>::decode(bytes.substr(0, bytes.size() - 1));
    if (!cents) return std::nullopt;
    return money{*cents};
  }
};

namespace {

static_assert(redoubt::cacheable<std::string>);
static_assert(redoubt::cacheable<int>);
static_assert(redoubt::cacheable<money>);
static_assert(!redoubt::cacheable<no_codec>);
static_assert(redoubt::cache_keyable<std::string>);
static_assert(redoubt::cache_keyable<std::string_view>);
static_assert(redoubt::cache_keyable<std::uint64_t>);
static_assert(!redoubt::cache_keyable<money>);

template <class T>
void round_trip(T value) {
  auto const bytes = codec<T>::encode(value);
  EXPECT_EQ(codec<T>::decode(bytes), std::optional<T>(value)) << bytes;
}

TEST(codec_policy, values_come_back_as_they_were) {
  round_trip(std::string());
  round_trip(std::string("a\0b\r\n\xff", 6));
  for (auto n : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
                 std::numeric_limits<std::int64_t>::max()}) {
    round_trip(n);
  }
  round_trip(std::numeric_limits<std::uint64_t>::max());
  round_trip(std::int8_t{-128});
  round_trip(true);
  round_trip(false);
  round_trip('x');
  round_trip(money{1250});
}

TEST(codec_policy, C101_strange_bytes_are_refused_and_never_guessed) {
  for (std::string_view bytes :
       {"", " ", "1 ", " 1", "+1", "0x10", "1.5", "9223372036854775808", "nan", "1\n"}) {
    EXPECT_EQ(codec<std::int64_t>::decode(bytes), std::nullopt) << bytes;
  }
  EXPECT_EQ(codec<std::int8_t>::decode("128"), std::nullopt);
  EXPECT_EQ(codec<std::uint8_t>::decode("-1"), std::nullopt);
  EXPECT_EQ(codec<std::uint8_t>::decode("256"), std::nullopt);
  EXPECT_EQ(codec<bool>::decode("2"), std::nullopt);
  EXPECT_EQ(codec<money>::decode("1250"), std::nullopt);
}

TEST(codec_policy, keys_are_text_of_any_bytes_or_numbers) {
  EXPECT_EQ(cache_key<std::string>::text("a\r\nb"), "a\r\nb");
  EXPECT_EQ(cache_key<std::string_view>::text("x"), "x");
  EXPECT_EQ(cache_key<int>::text(-7), "-7");
  EXPECT_EQ(cache_key<std::uint64_t>::text(std::numeric_limits<std::uint64_t>::max()),
            "18446744073709551615");
}

TEST(codec_policy, C104_ten_thousand_lives_are_spread_evenly_around_the_ttl) {
  std::map<long, int> seconds;
  duration sum{};
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    auto const life = redoubt::detail::spread_ttl(60s, 0.1, random_source(i));
    ASSERT_GE(life, 54s);
    ASSERT_LE(life, 66s);
    ASSERT_EQ(life % 1ms, 0ns);
    sum += life;
    ++seconds[static_cast<long>(life / 1s)];
  }
  EXPECT_NEAR(static_cast<double>((sum / 10'000).count()) / 1e9, 60.0, 0.2);
  for (auto const& [second, count] : seconds) EXPECT_LE(count, 1200) << second;
}

TEST(codec_policy, C104_no_spread_is_exact_and_a_short_life_stays_positive) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(redoubt::detail::spread_ttl(60s, 0, random_source(i)), 60s);
    EXPECT_GE(redoubt::detail::spread_ttl(1ms, 1, random_source(i)), 1ms);
    EXPECT_LE(redoubt::detail::spread_ttl(std::chrono::days(3650), 1, random_source(i)),
              std::chrono::days(7300));
    EXPECT_GE(redoubt::detail::spread_ttl(std::chrono::days(3650), 1, random_source(i)), 1ms);
  }
}

}  // namespace
