// SPDX-License-Identifier: BSL-1.0
// expect: another type than the operation gives
#include <string>

#include <redoubt/guard/single_flight.hpp>
#include <redoubt/guard/stack.hpp>

namespace asio = boost::asio;

asio::awaitable<redoubt::result<int>> load(std::string const& key, redoubt::deadline);

#ifdef SHOULD_COMPILE
redoubt::single_flight<std::string, int> flights;
#else
redoubt::single_flight<std::string, long> flights;
#endif

void call(asio::any_io_executor const& executor) {
  auto const s = redoubt::start(load) | one_per_key(flights);
  s.async([](redoubt::result<int>) {}, executor, redoubt::deadline{}, std::string("a"));
}
