// SPDX-License-Identifier: BSL-1.0
// A hedge may execute both attempts; an operation that is not declared idempotent has none.
// expect: no matching|could not convert|cannot convert|no viable conversion
#include <redoubt/guard/hedge.hpp>
#include <redoubt/guard/stack.hpp>

namespace asio = boost::asio;

asio::awaitable<redoubt::result<int>> once(redoubt::deadline) { co_return 1; }

auto route(redoubt::hedge& twice) {
#ifdef SHOULD_COMPILE
  return redoubt::start(once) | redoubt::through(twice, redoubt::idempotent);
#else
  return redoubt::start(once) | redoubt::through(twice, redoubt::repeat::not_executed);
#endif
}
