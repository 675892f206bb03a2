// SPDX-License-Identifier: BSL-1.0
// A retry in a stack says what may be repeated, too.
// expect: no matching|too few arguments
#include <redoubt/guard/retry.hpp>
#include <redoubt/guard/stack.hpp>

namespace asio = boost::asio;

asio::awaitable<redoubt::result<int>> once(redoubt::deadline) { co_return 1; }

auto route(redoubt::retry& again) {
#ifdef SHOULD_COMPILE
  return redoubt::start(once) | redoubt::through(again, redoubt::repeat::not_executed);
#else
  return redoubt::start(once) | redoubt::through(again);
#endif
}
