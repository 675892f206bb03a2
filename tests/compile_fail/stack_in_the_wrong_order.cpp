// SPDX-License-Identifier: BSL-1.0
// An open breaker must refuse before a slot is taken: the slots stand inside.
// expect: goes_outside
#include <redoubt/guard/breaker.hpp>
#include <redoubt/guard/bulkhead_layer.hpp>
#include <redoubt/guard/stack.hpp>

namespace asio = boost::asio;

asio::awaitable<redoubt::result<int>> load(int key, redoubt::deadline);

auto guard(redoubt::bulkhead& slots, redoubt::breaker& db) {
#ifdef SHOULD_COMPILE
  return redoubt::start(load) | through(slots) | through(db);
#else
  return redoubt::start(load) | through(db) | through(slots);
#endif
}
