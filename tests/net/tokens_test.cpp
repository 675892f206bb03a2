// SPDX-License-Identifier: BSL-1.0
//
// Completion: any token, any executor, on the token's executor, with the token's allocator, exactly once, and
// never inside the call that started it.
#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "net_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

/// The number of right answers, of six.
asio::awaitable<int> in_a_coroutine(client& redis) {
  int right = 0;
  // The bare form, the explicit one, and one deferred operation that is started later.
  auto const bare = co_await redis.async_call(command("GET", "1"));
  right += bare && bare->as_string() == "value of 1" ? 1 : 0;
  auto const explicit_token =
      co_await redis.async_call(command("GET", "2"), {.budget = 20s}, asio::use_awaitable);
  right += explicit_token && explicit_token->as_string() == "value of 2" ? 1 : 0;
  auto later = redis.async_call(command("GET", "3"), {.budget = 20s}, asio::deferred);
  auto const deferred = co_await std::move(later)(asio::use_awaitable);
  right += deferred && deferred->as_string() == "value of 3" ? 1 : 0;
  auto const batch = co_await redis.async_pipeline(pipeline(command("GET", "4"), command("PING")));
  right += batch.size() == 2 && batch[0] && batch[0]->as_string() == "value of 4" ? 1 : 0;
  auto const pending = co_await redis.async_pending();
  right += pending.empty() ? 1 : 0;
  auto const [tupled] =
      co_await redis.async_call(command("GET", "5"), {}, asio::as_tuple(asio::use_awaitable));
  right += tupled && tupled->as_string() == "value of 5" ? 1 : 0;
  co_return right;
}

/// The same calls with every kind of token, on a client whose executor is `executor`.
template <class Executor>
void use_every_token(Executor executor, scripted_server const& server) {
  client redis(executor, patient(towards(server)));

  std::promise<result<reply>> called;
  redis.async_call(command("GET", "0"), {}, [&](result<reply> got) { called.set_value(std::move(got)); });
  auto const by_callback = called.get_future().get();
  ASSERT_TRUE(by_callback) << by_callback.error();
  EXPECT_EQ(by_callback->as_string(), "value of 0");

  auto const by_future = redis.async_call(command("GET", "f"), {}, asio::use_future).get();
  ASSERT_TRUE(by_future) << by_future.error();
  EXPECT_EQ(by_future->as_string(), "value of f");

  EXPECT_EQ(asio::co_spawn(executor, in_a_coroutine(redis), asio::use_future).get(), 6);

  redis.async_call(command("GET", "nobody waits"), {}, asio::detached);
  EXPECT_TRUE(eventually([&] { return server.count("GET", "nobody waits") >= 1; }));

  // Move-only handlers.
  auto only = std::make_unique<std::promise<bool>>();
  auto done = only->get_future();
  redis.async_call(command("GET", "m"), {},
                   [p = std::move(only)](result<reply> got) { p->set_value(got.has_value()); });
  EXPECT_TRUE(done.get());
  redis.async_close(1s, asio::use_future).get();
}

TEST(tokens, C79_all_work_on_any_io_executor) {
  scripted_server server(scripted_server::plain());
  running_context context;
  use_every_token(asio::any_io_executor(context.io().get_executor()), server);
}

TEST(tokens, C79_all_work_on_the_executor_of_an_io_context) {
  scripted_server server(scripted_server::plain());
  running_context context(2);
  use_every_token(context.io().get_executor(), server);
}

TEST(tokens, C79_all_work_on_a_strand) {
  scripted_server server(scripted_server::plain());
  running_context context(2);
  use_every_token(asio::make_strand(context.io()), server);
}

TEST(tokens, C79_all_work_on_a_thread_pool) {
  scripted_server server(scripted_server::plain());
  asio::thread_pool pool(2);
  use_every_token(pool.get_executor(), server);
  pool.join();
}

TEST(tokens, C79_all_work_on_a_strand_of_a_thread_pool) {
  scripted_server server(scripted_server::plain());
  asio::thread_pool pool(2);
  use_every_token(asio::make_strand(pool), server);
  pool.join();
}

TEST(tokens, C79_all_work_on_the_system_executor) {
  scripted_server server(scripted_server::plain());
  use_every_token(asio::system_executor(), server);
}

/// Every operation, in every manner of ending, with completions bound to `executor`; `inside` says whether a
/// handler runs where it should.
template <class Executor, class Inside>
void expect_completions_on(Executor executor, Inside inside) {
  scripted_server server(scripted_server::plain());
  running_context context(2);
  client redis(context.io(), patient(towards(server)));
  std::atomic<int> right = 0;
  std::atomic<int> ended = 0;
  auto const note = [&](auto&&...) {
    if (inside()) ++right;
    ++ended;
  };
  script const body("return 1");
  for (int i = 0; i < 20; ++i) {
    redis.async_call(command("GET", "k"), {}, asio::bind_executor(executor, note));
    redis.async_call(command("MULTI"), {}, asio::bind_executor(executor, note));                  // refused
    redis.async_call(command("GET", "k"), {.budget = 0ms}, asio::bind_executor(executor, note));  // too late
    redis.async_pipeline(pipeline(), {}, asio::bind_executor(executor, note));  // nothing to do
    redis.async_pipeline(pipeline(command("PING")), {}, asio::bind_executor(executor, note));
    redis.async_transaction(transaction(command("PING")), {}, asio::bind_executor(executor, note));
    redis.async_eval(body, keys("k"), args(), {}, asio::bind_executor(executor, note));
    redis.async_pending(asio::bind_executor(executor, note));
  }
  ASSERT_TRUE(eventually([&] { return ended == 160; }));
  redis.async_close(1s, asio::bind_executor(executor, note));
  ASSERT_TRUE(eventually([&] { return ended == 161; }));
  redis.async_call(command("GET", "k"), {}, asio::bind_executor(executor, note));  // closed
  ASSERT_TRUE(eventually([&] { return ended == 162; }));
  EXPECT_EQ(right, 162);
}

TEST(completion, happens_on_the_tokens_strand) {
  running_context other(2);
  auto const strand = asio::make_strand(other.io());
  expect_completions_on(strand, [&] { return strand.running_in_this_thread(); });
}

TEST(completion, happens_on_the_tokens_thread_pool) {
  asio::thread_pool pool(2);
  expect_completions_on(pool.get_executor(), [&] { return pool.get_executor().running_in_this_thread(); });
  pool.join();
}

TEST(completion, happens_on_the_tokens_other_context) {
  running_context other;
  expect_completions_on(other.io().get_executor(),
                        [&] { return other.io().get_executor().running_in_this_thread(); });
}

TEST(completion, happens_on_an_erased_executor_too) {
  running_context other;
  expect_completions_on(other.executor(), [&] { return other.io().get_executor().running_in_this_thread(); });
}

TEST(completion, is_work_of_the_tokens_context) {
  // Nothing but the call keeps this context running, and it must not end before the call does.
  scripted_server server([](peer& p) {
    while (auto const command = p.read()) {
      if (is(*command, "GET") && !p.wait(50ms)) return;
      if (!p.answer(*command)) return;
    }
  });
  running_context context;
  client redis(context.io(), patient(towards(server)));
  asio::io_context other;
  bool done = false;
  redis.async_call(command("GET", "k"), {}, asio::bind_executor(other, [&](result<reply>) { done = true; }));
  other.run();
  EXPECT_TRUE(done);
}

TEST(completion, never_happens_inside_the_initiating_call) {
  scripted_server server(scripted_server::plain());
  running_context context;
  auto options = patient(towards(server));
  options.bounds.in_flight = 3;
  client redis(context.io(), options);
  std::atomic<bool> inside = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> ended = 0;
  int started = 0;
  auto const note = [&](auto&&...) {
    if (inside) ++wrong;
    ++ended;
  };
  script const body("return 1");
  // On the context's own thread, where running the handler at once would be the easiest thing to do.
  auto const start_all = [&] {
    inside = true;
    for (int i = 0; i < 5; ++i, ++started)
      redis.async_call(command("GET", "k"), {}, note);  // two find the client full
    redis.async_call(command("MULTI"), {}, note);
    redis.async_call(command("GET", "k"), {.budget = -1s}, note);
    redis.async_pipeline(pipeline(), {}, note);
    redis.async_pipeline(pipeline(command("WATCH", "k")), {}, note);
    redis.async_transaction(transaction(), {}, note);
    redis.async_eval(body, keys(), args(), {.budget = 0s}, note);
    redis.async_pending(note);
    started += 7;
    inside = false;
  };
  asio::post(context.io(), start_all);
  ASSERT_TRUE(eventually([&] { return ended == 12; }));
  asio::post(context.io(), [&] {
    inside = true;
    redis.async_close(0s, note);
    redis.async_close(0s, note);
    inside = false;
  });
  ASSERT_TRUE(eventually([&] { return ended == 14; }));
  asio::post(context.io(), start_all);
  ASSERT_TRUE(eventually([&] { return ended == 26; }));
  EXPECT_EQ(wrong, 0);
}

TEST(completion, that_throws_does_not_hurt_the_others) {
  scripted_server server(scripted_server::plain());
  asio::io_context io;
  auto work = asio::make_work_guard(io);
  std::atomic<int> thrown = 0;
  std::thread runner([&] {
    for (;;) {
      try {
        io.run();
        return;
      } catch (std::runtime_error const&) {
        ++thrown;
      }
    }
  });
  {
    client redis(io, patient(towards(server)));
    std::atomic<int> ended = 0;
    for (int i = 0; i < 300; ++i) {
      auto const handler = [&ended, i](auto&&...) {
        ++ended;
        if (i % 3 == 0) throw std::runtime_error("of the application");
      };
      if (i % 5 == 0) {
        redis.async_call(command("MULTI"), {}, handler);  // refused
      } else {
        redis.async_call(command("GET", "k"), {}, handler);
      }
    }
    EXPECT_TRUE(eventually([&] { return ended == 300 && thrown == 100; }))
        << ended << " ended, " << thrown << " thrown";
    EXPECT_TRUE(call(redis, command("GET", "k")));
    EXPECT_EQ(redis.snapshot().readied, 1U);
    redis.async_close(0s, [] { throw std::runtime_error("of the application"); });
    EXPECT_TRUE(eventually([&] { return thrown == 101; }));
  }
  work.reset();
  runner.join();
}

/// Counts what is allocated and freed.
template <class T>
struct counting_allocator {
  using value_type = T;
  std::atomic<int>* live;
  std::atomic<int>* total;
  counting_allocator(std::atomic<int>* l, std::atomic<int>* t) : live(l), total(t) {}
  template <class U>
  counting_allocator(counting_allocator<U> const& other) : live(other.live),
                                                           total(other.total) {}  // NOLINT
  T* allocate(std::size_t n) {
    ++*live;
    ++*total;
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* p, std::size_t n) {
    --*live;
    std::allocator<T>().deallocate(p, n);
  }
  friend bool operator==(counting_allocator const& a, counting_allocator const& b) {
    return a.live == b.live;
  }
};

TEST(completion, uses_the_tokens_allocator_and_frees_before_the_handler_runs) {
  scripted_server server(scripted_server::plain());
  running_context context;
  running_context other;
  std::atomic<int> live = 0;
  std::atomic<int> total = 0;
  counting_allocator<void> const allocator(&live, &total);
  std::promise<int> first;
  std::promise<int> second;
  std::promise<int> third;
  {
    client redis(context.io(), patient(towards(server)));
    redis.async_call(command("GET", "k"), {},
                     asio::bind_allocator(allocator, [&](result<reply>) { first.set_value(live); }));
    EXPECT_EQ(first.get_future().get(), 0);
    EXPECT_GE(total, 1);
    redis.async_pipeline(pipeline(command("GET", "k"), command("PING")), {},
                         asio::bind_allocator(allocator, asio::bind_executor(other.io(), [&](replies) {
                                                second.set_value(live);
                                              })));
    second.get_future().get();
    redis.async_call(command("MULTI"), {},
                     asio::bind_allocator(allocator, [&](result<reply>) { third.set_value(live); }));
    EXPECT_EQ(third.get_future().get(), 0);
    EXPECT_GE(total, 3);
  }
  EXPECT_TRUE(eventually([&] { return live == 0; }));
}

}  // namespace
