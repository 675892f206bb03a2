// SPDX-License-Identifier: BSL-1.0
//
// What the application's keys may do to a single flight, and callers whose contexts are not one.
#include <redoubt/guard/single_flight.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <redoubt/guard/time_limit.hpp>

#include "unit/guard_rig.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using redoubt::effect;
using redoubt::errc;
using redoubt::result;
using redoubt::testing::world;
using test::told;

/// Throws in one place at a time.
struct moody_key {
  explicit moody_key(int n = 0) : number(n) {}
  moody_key(moody_key const& other) : number(other.number) { what_may_throw("copy"); }
  moody_key& operator=(moody_key const&) = default;
  friend bool operator==(moody_key const& a, moody_key const& b) {
    what_may_throw("comparison");
    return a.number == b.number;
  }
  static void what_may_throw(std::string_view what) {
    if (what == throws) throw std::runtime_error(std::string(what));
  }
  int number;
  static inline std::string_view throws;
};
struct moody_hash {
  std::size_t operator()(moody_key const&) const {
    moody_key::what_may_throw("hash");
    return 1;  // all in one bucket, so that they are compared
  }
};

TEST(single_flight_key, C100_a_key_that_throws_fails_its_own_caller_and_nobody_else) {
  for (auto const* const what : {"hash", "comparison", "copy"}) {
    SCOPED_TRACE(what);
    world w;
    redoubt::single_flight<moody_key, int, moody_hash> f;
    test::manual_operation op;
    auto const s =
        redoubt::start_plain<int>(op.operation()) | one_per_key(f, [](int n) { return moody_key(n); });
    told a, b, c;
    call(w, s, {}, a, 1);
    w.run_for(1ms);
    moody_key::throws = what;
    call(w, s, {}, b, 2);
    w.run_for(1ms);
    ASSERT_TRUE(b.value);
    EXPECT_EQ(b.code(), errc::load_failed);
    EXPECT_EQ(b.value->error().effect, effect::none) << "nothing was started for it";
    op.end(0, result<int>(1));
    w.run_for(1ms);
    EXPECT_TRUE(a.ok());
    moody_key::throws = {};
    call(w, s, {}, c, 2);
    w.run_for(1ms);
    ASSERT_EQ(op.started(), 2u);
    op.end(1, result<int>(1));
    w.run_for(1ms);
    EXPECT_TRUE(c.ok());
    EXPECT_EQ(f.snapshot().flights, 0u);
  }
}

// A flight's timer runs where its leader runs. Where that may stand still, a limit around it runs where the
// caller runs.
TEST(single_flight_key, C14_a_follower_can_have_a_limit_that_does_not_depend_on_the_leaders_context) {
  asio::io_context frozen, living;
  redoubt::single_flight<int, int> f({.limit = 1h});
  test::manual_operation op;
  auto const s =
      redoubt::start_plain<int>(op.operation()) | one_per_key(f) | redoubt::at_rank<85>(redoubt::limit(20ms));
  told leader, follower;
  auto const ask = [&](asio::io_context& where, told& into) {
    s.async([&into](result<int> r) { into.value = std::move(r); }, where.get_executor(), redoubt::deadline(),
            1);
  };
  ask(frozen, leader);
  ask(living, follower);
  living.run();
  EXPECT_EQ(follower.code(), errc::limit_exceeded);
  EXPECT_FALSE(leader.value);
  EXPECT_EQ(f.snapshot().left, 1u);
  op.end(0, result<int>(1));
  EXPECT_EQ(f.snapshot().answered, 1u);
  frozen.run();
  EXPECT_TRUE(leader.ok());
}

}  // namespace
