// SPDX-License-Identifier: BSL-1.0
// g++ 12 destroys a closure with a destructor twice when it is a temporary inside a co_await expression.
// expect: safe_callable
#include <memory>
#include <utility>

#include <redoubt/guard/retry.hpp>

namespace asio = boost::asio;

asio::awaitable<redoubt::result<int>> once(std::shared_ptr<int> value) { co_return *value; }

asio::awaitable<int> route(redoubt::retry& again, asio::any_io_executor executor,
                           std::shared_ptr<int> value) {
#ifdef SHOULD_COMPILE
  auto attempt = [value](redoubt::deadline) { return once(value); };
  auto got = co_await again.run<int>(executor, {}, redoubt::repeat::not_executed, attempt);
#else
  auto got = co_await again.run<int>(executor, {}, redoubt::repeat::not_executed,
                                     [value](redoubt::deadline) { return once(value); });
#endif
  co_return got ? *got : 0;
}
