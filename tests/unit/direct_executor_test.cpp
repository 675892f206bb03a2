// SPDX-License-Identifier: BSL-1.0
//
// An executor that runs things where an any_io_executor would, in the same cases inside the call.
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <gtest/gtest.h>

#include <redoubt/async/direct_executor.hpp>

namespace {

namespace asio = boost::asio;
using redoubt::detail::direct_executor;

/// What happens, in order, when `executor` is asked from inside and from outside its context.
template <class Executor>
std::vector<std::string> order_of(asio::io_context& context, Executor const& executor) {
  std::vector<std::string> out;
  asio::dispatch(executor, [&] { out.emplace_back("dispatched from outside"); });
  out.emplace_back("outside");
  context.restart();
  context.run();
  asio::post(context, [&] {
    asio::post(executor, [&] { out.emplace_back("posted"); });
    asio::dispatch(executor, [&] { out.emplace_back("dispatched"); });
    asio::require(executor, asio::execution::blocking.never).execute([&] {
      out.emplace_back("never inside");
    });
    executor.execute([&] { out.emplace_back("executed"); });
    out.emplace_back("inside");
  });
  context.restart();
  context.run();
  return out;
}

TEST(direct_executor, does_what_the_executor_of_an_io_context_does) {
  asio::io_context context;
  asio::any_io_executor const any = context.get_executor();
  EXPECT_EQ(order_of(context, direct_executor(any)), order_of(context, any));
}

TEST(direct_executor, does_what_any_other_executor_does) {
  asio::io_context context;
  for (asio::any_io_executor const& any :
       {asio::any_io_executor(asio::make_strand(context)),
        asio::any_io_executor(asio::require(context.get_executor(), asio::execution::blocking.never))}) {
    EXPECT_EQ(order_of(context, direct_executor(any)), order_of(context, any));
  }
}

TEST(direct_executor, runs_on_the_threads_of_a_pool) {
  asio::thread_pool pool(2);
  direct_executor const executor{asio::any_io_executor(pool.get_executor())};
  int runs = 0;
  auto const strand = asio::strand<direct_executor>(executor);
  for (int i = 0; i < 1000; ++i) {
    asio::post(strand, [&] {
      EXPECT_TRUE(pool.get_executor().running_in_this_thread());
      ++runs;
    });
  }
  pool.join();
  EXPECT_EQ(runs, 1000) << "one at a time";
}

TEST(direct_executor, says_how_it_blocks_and_where_it_is) {
  asio::io_context context;
  asio::io_context other;
  direct_executor const one{asio::any_io_executor(context.get_executor())};
  direct_executor const never = asio::require(one, asio::execution::blocking.never);
  EXPECT_EQ(asio::query(one, asio::execution::blocking), asio::execution::blocking.possibly);
  EXPECT_EQ(asio::query(never, asio::execution::blocking), asio::execution::blocking.never);
  EXPECT_EQ(asio::require(never, asio::execution::blocking.possibly), one);
  EXPECT_EQ(&asio::query(one, asio::execution::context), &context);
  EXPECT_NE(one, never);
  EXPECT_NE(one, direct_executor(asio::any_io_executor(other.get_executor())));
  EXPECT_NE(one, direct_executor(asio::any_io_executor(asio::make_strand(context))));
  direct_executor const on_strand{asio::any_io_executor(asio::make_strand(context))};
  EXPECT_EQ(&asio::query(on_strand, asio::execution::context), &context);
}

TEST(direct_executor, an_exception_leaves_through_the_context) {
  asio::io_context context;
  direct_executor const executor{asio::any_io_executor(context.get_executor())};
  bool went_on = false;
  asio::post(context, [&] {
    asio::dispatch(executor, [] { throw std::runtime_error("a handler's"); });
    went_on = true;
  });
  EXPECT_THROW(context.run(), std::runtime_error);
  EXPECT_TRUE(went_on) << "as with the context's own executor";
}

}  // namespace
