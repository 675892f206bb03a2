// SPDX-License-Identifier: BSL-1.0
//
// The end of a client: destroyed in every state of its connection, from every thread, with calls under way;
// and nothing that keeps the application's event loop alive after it was closed.
#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

enum class from { another_thread, the_context, a_handler };

/// Ends the client where `where` says; the time the destructor took.
duration destroy(std::unique_ptr<client>& redis, running_context& context, from where) {
  std::promise<duration> took;
  auto const end = [&] {
    auto const start = steady::now();
    redis.reset();
    took.set_value(steady::now() - start);
  };
  switch (where) {
    case from::another_thread: std::thread(end).join(); break;
    case from::the_context: asio::post(context.io(), end); break;
    case from::a_handler:
      redis->async_call(command("MULTI"), {},
                        [&](result<reply>) { end(); });  // refused, so it ends in every state
      break;
  }
  return took.get_future().get();
}

constexpr std::size_t pending = 100;

struct scene {
  client_options options;
  /// True once the connection is in the state that is wanted.
  std::function<bool(client&)> reached;
  /// What a call that the state has not let through is told.
  std::function<void(seen_call const&)> expect;
  command first = command("GET", "k");
};

void play(scene const& s, int rounds) {
  running_context context;
  for (int round = 0; round < rounds; ++round) {
    for (from const where : {from::another_thread, from::the_context, from::a_handler}) {
      crowd all(pending);
      auto redis = std::make_unique<client>(context.io(), s.options);
      for (std::size_t i = 0; i < pending; ++i) all.start(*redis, i, i == 0 ? s.first : command("GET", "k"));
      ASSERT_TRUE(eventually([&] { return s.reached(*redis); })) << redis->snapshot().state;
      EXPECT_LE(destroy(redis, context, where), 100ms + slack);
      ASSERT_TRUE(all.wait(10s)) << all.ended() << " ended";
      for (auto const& one : all.calls()) {
        EXPECT_EQ(one.completions, 1);
        ASSERT_FALSE(*one.got);
        s.expect(one);
      }
    }
  }
}

void expect_closed(seen_call const& one, effect what) {
  EXPECT_EQ(one.got->error().code, errc::closed) << one.got->error();
  EXPECT_EQ(one.got->error().effect, what) << one.got->error();
}

client_options without_limits(scripted_server const& server) {
  auto out = towards(server);
  out.timeouts = {.connect = 1min, .attempt = 1min, .call = 1min};
  out.reconnect.stall_limit = 1min;
  out.bounds.queued_bytes = std::size_t{64} << 20;
  return out;
}

TEST(destroyed, C80_before_the_first_call_was_looked_at) {
  scripted_server server([](peer& p) { p.wait_closed(); });
  play({without_limits(server), [](client&) { return true; },
        [](seen_call const& one) { expect_closed(one, effect::none); }},
       100);
}

TEST(destroyed, C80_while_resolving) {
  scripted_server server([](peer& p) { p.wait_closed(); });
  auto options = without_limits(server);
  options.address.host = "localhost";
  play({options, [](client& c) { return c.snapshot().attempts == 1; },
        [](seen_call const& one) { expect_closed(one, effect::none); }},
       50);
}

TEST(destroyed, C80_while_connecting) {
  scripted_server server(scripted_server::plain(), {.backlog_full = true});
  play({without_limits(server), [](client& c) { return c.snapshot().state == link_state::connecting; },
        [](seen_call const& one) { expect_closed(one, effect::none); }},
       50);
}

TEST(destroyed, C80_in_the_handshake) {
  scripted_server server([](peer& p) { p.wait_closed(); });
  play({without_limits(server), [](client& c) { return c.snapshot().state == link_state::handshaking; },
        [](seen_call const& one) { expect_closed(one, effect::none); }},
       50);
}

TEST(destroyed, C80_while_writing) {
  scripted_server server([](peer& p) {
    if (p.greet()) p.wait_closed();
  });
  scene s{without_limits(server), [](client& c) { return c.snapshot().owed > 0; },
          [](seen_call const& one) {
            auto const& why = one.got->error();
            expect_closed(one, why.phase == phase::queue ? effect::none : effect::unknown);
          }};
  s.first = command("SET", "k", std::string(std::size_t{16} << 20, 'x'));
  play(s, 10);
}

TEST(destroyed, C80_while_reading) {
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    while (p.read()) {
    }
  });
  play({without_limits(server), [](client& c) { return c.snapshot().owed == pending; },
        [](seen_call const& one) { expect_closed(one, effect::unknown); }},
       50);
}

TEST(destroyed, C80_while_backing_off) {
  scripted_server server(scripted_server::plain(), {.refusing = true});
  auto options = without_limits(server);
  options.reconnect.backoff = {.base = 1min, .cap = 1min};
  play({options, [](client& c) { return c.snapshot().state == link_state::backing_off; },
        [](seen_call const& one) {
          auto const code = one.got->error().code;
          EXPECT_TRUE(code == errc::connection_refused || code == errc::closed) << one.got->error();
          EXPECT_EQ(one.got->error().effect, effect::none);
        }},
       50);
}

TEST(destroyed, C80_with_nothing_under_way) {
  scripted_server server(scripted_server::plain());
  running_context context;
  for (int round = 0; round < 50; ++round) {
    for (from const where : {from::another_thread, from::the_context, from::a_handler}) {
      auto redis = std::make_unique<client>(context.io(), without_limits(server));
      if (round % 2 == 0) {
        ASSERT_TRUE(call(*redis, command("PING")));
      }
      EXPECT_LE(destroy(redis, context, where), 100ms + slack);
    }
  }
  EXPECT_TRUE(eventually([&] { return server.open() == 0; })) << "a connection was left behind";
}

TEST(destroyed, C80_in_the_middle_of_healthy_traffic) {
  scripted_server server(scripted_server::plain());
  running_context context(2);
  for (int round = 0; round < 300; ++round) {
    crowd all(pending);
    auto redis = std::make_unique<client>(context.io(), without_limits(server));
    for (std::size_t i = 0; i < pending; ++i) {
      all.start(*redis, i, command("GET", std::to_string(i)));
      if (i == 10 && round % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(round * 5));
    }
    destroy(redis, context, round % 2 == 0 ? from::another_thread : from::the_context);
    ASSERT_TRUE(all.wait(10s));
    for (std::size_t i = 0; i < pending; ++i) {
      EXPECT_EQ(all[i].completions, 1);
      if (*all[i].got) {
        EXPECT_EQ((*all[i].got)->as_string(), "value of " + std::to_string(i));
      } else {
        EXPECT_EQ(all[i].got->error().code, errc::closed) << all[i].got->error();
      }
    }
  }
}

TEST(destroyed, C80_its_context_frees_what_never_completes) {
  // The context ends before its work: nothing completes, nothing leaks (the address sanitizer looks), nothing
  // crashes.
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    while (p.read()) {
    }
  });
  for (int turns : {0, 1, 2, 5, 20, 100}) {
    auto const alive = std::make_shared<int>(0);
    {
      asio::io_context io;
      client redis(io, without_limits(server));
      for (int i = 0; i < 10; ++i) {
        redis.async_call(command("GET", "k"), {}, [alive](result<reply>) { ADD_FAILURE() << "completed"; });
      }
      redis.async_eval(script("return 1"), keys("k"), args("a"), {},
                       [alive](result<reply>) { ADD_FAILURE() << "completed"; });
      redis.async_pending([alive](std::vector<pending_info>) {});
      for (int i = 0; i < turns; ++i) io.run_one_for(2ms);
    }
    EXPECT_EQ(alive.use_count(), 1) << "a handler was kept";
  }
}

asio::awaitable<void> owns_its_client(client_options options, std::shared_ptr<int> alive) {
  client redis(co_await asio::this_coro::executor, std::move(options));
  (void)alive;
  (void)co_await redis.async_call(command("GET", "k"), {}, asio::use_awaitable);
  ADD_FAILURE() << "completed";
}

TEST(destroyed, C80_its_context_frees_a_coroutine_that_owns_the_client) {
  // The handler owns the frame, the frame the client, the client the connection, the connection the handler.
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    while (p.read()) {
    }
  });
  for (int turns : {1, 2, 5, 20, 100}) {
    auto const alive = std::make_shared<int>(0);
    {
      asio::io_context io;
      asio::co_spawn(io, owns_its_client(without_limits(server), alive), asio::detached);
      for (int i = 0; i < turns; ++i) io.run_one_for(2ms);
    }
    EXPECT_EQ(alive.use_count(), 1) << "the frame was kept, after " << turns << " turns";
  }
}

TEST(destroyed, C80_its_context_frees_a_script_whose_client_has_gone) {
  scripted_server server([](peer& p) { p.wait_closed(); });
  auto const alive = std::make_shared<int>(0);
  {
    asio::io_context io;
    client redis(io, without_limits(server));
    redis.async_eval(script("return 1"), keys("k"), args(1), {}, [alive](result<reply>) {});
  }
  EXPECT_EQ(alive.use_count(), 1) << "a handler was kept";
}

/// Counts, as long as it lives.
struct counting_sink final : event_sink {
  ~counting_sink() override { gone = true; }
  void on(event const&) noexcept override {
    EXPECT_FALSE(gone);
    ++told;
  }
  std::atomic<int> told = 0;
  std::atomic<bool> gone = false;
};

TEST(destroyed, C80_its_sink_may_go_right_after_it) {
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    while (p.read()) {
    }
  });
  for (bool const with_calls : {false, true}) {
    running_context context;
    auto sink = std::make_unique<counting_sink>();
    auto options = without_limits(server);
    options.events = sink.get();
    auto redis = std::make_unique<client>(context.io(), options);
    redis->async_call(command("GET", "k"), {}, [](result<reply>) {});
    ASSERT_TRUE(eventually([&] { return redis->snapshot().state == link_state::ready; }));
    for (int i = 0; with_calls && i < 100; ++i) {
      redis->async_call(command("GET", "k"), {}, [](result<reply>) {});
      redis->async_call(command("MULTI"), {}, [](result<reply>) {});  // refused, and told
    }
    redis.reset();
    EXPECT_GT(sink->told, 0);
    sink.reset();  // the connections still have their end to learn of
  }
}

/// Runs a context on a thread of its own until it has nothing to do.
struct counted_run {
  counted_run()
      : thread([this] {
          io.run();
          ended = steady::now();
        }) {}
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  steady::time_point ended{};
  std::thread thread;
};

void expect_prompt_return(client_options options, std::function<bool(client&)> const& reached) {
  counted_run context;
  crowd all(50);
  client redis(context.io, std::move(options));
  for (std::size_t i = 0; i < 50; ++i) all.start(redis, i, command("GET", "k"), {.budget = 1min});
  ASSERT_TRUE(eventually([&] { return reached(redis); })) << redis.snapshot().state;
  context.work.reset();
  auto const start = steady::now();
  redis.async_close(0s, [] {});
  context.thread.join();
  EXPECT_LE(context.ended - start, 50ms + slack);
  EXPECT_TRUE(all.wait(0s)) << all.ended() << " ended";
}

TEST(closed, C82_run_returns_while_calls_wait_for_replies) {
  scripted_server server([](peer& p) {
    if (!p.greet()) return;
    while (p.read()) {
    }
  });
  expect_prompt_return(without_limits(server), [](client& c) { return c.snapshot().owed == 50; });
}

TEST(closed, C82_run_returns_while_connecting) {
  scripted_server server(scripted_server::plain(), {.backlog_full = true});
  expect_prompt_return(without_limits(server),
                       [](client& c) { return c.snapshot().state == link_state::connecting; });
}

TEST(closed, C82_run_returns_in_the_handshake) {
  scripted_server server([](peer& p) { p.wait_closed(); });
  expect_prompt_return(without_limits(server),
                       [](client& c) { return c.snapshot().state == link_state::handshaking; });
}

TEST(closed, C82_run_returns_while_backing_off) {
  scripted_server server(scripted_server::plain(), {.refusing = true});
  auto options = without_limits(server);
  options.reconnect.backoff = {.base = 30s, .cap = 30s};
  expect_prompt_return(options, [](client& c) { return c.snapshot().state == link_state::backing_off; });
}

TEST(closed, C82_run_returns_after_destruction_alone) {
  scripted_server server(scripted_server::plain());
  counted_run context;
  auto redis = std::make_unique<client>(context.io, without_limits(server));
  ASSERT_TRUE(call(*redis, command("PING")));
  context.work.reset();
  auto const start = steady::now();
  redis.reset();
  context.thread.join();
  EXPECT_LE(context.ended - start, 50ms + slack);
}

}  // namespace
