// SPDX-License-Identifier: BSL-1.0
//
// Fails an operation at each of its steps, the handshake's included, in every way a server can fail there.
// The write under test is one INCR, so its count says what really happened.
#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/client.hpp>
#include <redoubt/testing/world.hpp>

namespace {

using namespace std::chrono_literals;
using namespace redoubt;
using redoubt::testing::world;
using fault = redoubt::testing::fake_server::fault;

/// What the caller was told.
struct told {
  bool ok = false;
  failure why{};
};

using operation = std::function<asio::awaitable<told>(client&)>;

asio::awaitable<told> one_call(client& redis) {
  auto const r = co_await redis.async_call(command("INCR", "n"));
  co_return r ? told{true} : told{false, r.error()};
}

asio::awaitable<told> a_pipeline(client& redis) {
  auto const r =
      co_await redis.async_pipeline(pipeline(command("PING"), command("INCR", "n"), command("PING")));
  co_return r[1] ? told{true} : told{false, r[1].error()};
}

asio::awaitable<told> a_transaction(client& redis) {
  auto const r = co_await redis.async_transaction(transaction(command("INCR", "n"), command("GET", "n")));
  co_return r ? told{true} : told{false, r.error()};
}

asio::awaitable<told> a_script(client& redis) {
  script const body("return redis.call('INCR', KEYS[1])");
  auto const r = co_await redis.async_eval(body, keys("n"), args());
  co_return r ? told{true} : told{false, r.error()};
}

struct scenario {
  std::string name;
  operation run;
  bool warm = false;  ///< It has run before on this server: the script is known, under another key.
};

struct way {
  fault::kind what;
  std::size_t cut_after = 0;
};

std::vector<way> ways() {
  std::vector<way> out{{fault::kind::drop_reply},
                       {fault::kind::silent},
                       {fault::kind::reset_before_execution},
                       {fault::kind::reset_after_execution},
                       {fault::kind::extra_reply},
                       {fault::kind::garbage},
                       {fault::kind::error}};
  for (std::size_t n = 0; n < 12; ++n) out.push_back({fault::kind::cut, n});
  return out;
}

std::string text_of(fault::kind what) {
  switch (what) {
    case fault::kind::extra_reply: return "+ONE TOO MANY\r\n";
    case fault::kind::garbage: return "HTTP/1.1 400 Bad Request\r\n\r\n";
    case fault::kind::error: return "LOADING Redis is loading the dataset in memory";
    default: return {};
  }
}

class each_step : public ::testing::TestWithParam<scenario> {
 protected:
  static client_options options() { return {.url = "redis://redis:6379"}; }

  static void prepare(world& w, scenario const& s) {
    if (!s.warm) return;
    client other(w.get_executor(), options());
    EXPECT_TRUE(w.run(s.run(other)).ok);
    w.redis()->set("n", "0", w.now());
    w.redis()->clear_log();
  }

  static int count(world& w) {
    auto const n = w.redis()->get("n", w.now());
    return n ? std::stoi(*n) : 0;
  }

  /// How many commands the operation takes on a new connection when nothing fails.
  static std::size_t steps(scenario const& s) {
    world w(7);
    prepare(w, s);
    client redis(w.get_executor(), options());
    EXPECT_TRUE(w.run(s.run(redis)).ok);
    EXPECT_EQ(count(w), 1);
    return w.redis()->count("");
  }
};

TEST_P(each_step, C31_C34_tells_the_truth_about_what_was_executed_and_comes_back) {
  auto const& s = GetParam();
  auto const n = steps(s);
  ASSERT_GE(n, 3u);
  std::size_t failed_unknown = 0;
  std::size_t failed_none = 0;
  for (auto const& how : ways()) {
    for (std::size_t step = 0; step < n; ++step) {
      SCOPED_TRACE(s.name + ", fault " + std::to_string(static_cast<int>(how.what)) + " (" +
                   std::to_string(how.cut_after) + ") at step " + std::to_string(step));
      world w(7);
      prepare(w, s);
      w.redis()->inject({.what = how.what,
                         .cut_after = how.cut_after,
                         .text = text_of(how.what),
                         .skip = step,
                         .times = 1});
      client redis(w.get_executor(), options());
      auto const start = w.now();
      auto const got = w.run(s.run(redis));
      EXPECT_LE(w.now() - start, 151ms);
      auto const then = count(w);
      EXPECT_LE(then, 1) << "executed twice";
      if (got.ok) {
        EXPECT_EQ(then, 1);
      } else if (got.why.effect == effect::none) {
        ++failed_none;
        EXPECT_EQ(then, 0) << got.why;
      } else {
        ++failed_unknown;
      }
      w.redis()->clear_faults();
      bool back = false;
      for (auto const limit = w.now() + 2500ms; !back && w.now() < limit; w.run_for(20ms)) {
        back = w.run(redis.async_call(command("PING"), {}, asio::use_awaitable)).has_value();
      }
      EXPECT_TRUE(back);
      EXPECT_EQ(count(w), then) << "executed later";
    }
  }
  EXPECT_GT(failed_none, 0u);
  EXPECT_GT(failed_unknown, 0u);
}

INSTANTIATE_TEST_SUITE_P(operations, each_step,
                         ::testing::Values(scenario{"call", one_call}, scenario{"pipeline", a_pipeline},
                                           scenario{"transaction", a_transaction},
                                           scenario{"new_script", a_script},
                                           scenario{"known_script", a_script, true}),
                         [](auto const& one) { return one.param.name; });

}  // namespace
