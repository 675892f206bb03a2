// SPDX-License-Identifier: BSL-1.0
// What may be repeated has no default: whoever retries says whether executing twice is the same as once.
// expect: no matching
#include <redoubt/guard/retry.hpp>

namespace asio = boost::asio;

asio::awaitable<redoubt::result<int>> once(redoubt::deadline) { co_return 1; }

asio::awaitable<int> route(redoubt::retry& again, asio::any_io_executor executor) {
#ifdef SHOULD_COMPILE
  auto got = co_await again.run<int>(executor, {}, redoubt::repeat::not_executed, once);
#else
  auto got = co_await again.run<int>(executor, {}, once);
#endif
  co_return got ? *got : 0;
}
