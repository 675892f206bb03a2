// SPDX-License-Identifier: BSL-1.0
// g++ 12 destroys an aggregate with a destructor twice when it is a temporary inside a co_await expression,
// so the options of an awaited call own no memory and cannot be made to.
// expect: cannot derive from .final. base|call_options. is marked 'final'
#include <string>

#include <boost/asio/awaitable.hpp>

#include <redoubt/client.hpp>

using namespace std::chrono_literals;

#ifdef SHOULD_COMPILE
using labelled = redoubt::call_options;
#else
struct labelled : redoubt::call_options {
  std::string label;
};
#endif

boost::asio::awaitable<bool> route(redoubt::client& redis) {
  auto got = co_await redis.async_call(redoubt::command("GET", "k"), labelled{.budget = 50ms});
  co_return got.has_value();
}
