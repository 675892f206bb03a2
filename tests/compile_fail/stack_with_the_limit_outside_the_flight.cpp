// SPDX-License-Identifier: BSL-1.0
// A limit around the single flight would end the shared load with its leader's time: the limit stands inside.
// expect: goes_outside
#include <string>

#include <redoubt/guard/single_flight.hpp>
#include <redoubt/guard/stack.hpp>
#include <redoubt/guard/time_limit.hpp>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<redoubt::result<int>> load(std::string const& key, redoubt::deadline);

auto guard(redoubt::single_flight<std::string, int>& flights) {
#ifdef SHOULD_COMPILE
  return redoubt::start(load) | redoubt::limit(500ms) | one_per_key(flights);
#else
  return redoubt::start(load) | one_per_key(flights) | redoubt::limit(500ms);
#endif
}
