// SPDX-License-Identifier: BSL-1.0
// A loader that is no coroutine would block the executor for everybody.
// expect: constraint|no matching
#include <chrono>
#include <string>

#include <redoubt/policy/cache_aside.hpp>

#include "declared_client.hpp"

using namespace std::chrono_literals;

void route(test::declared_client& redis) {
#ifdef SHOULD_COMPILE
  auto load = [](std::string const& key, redoubt::deadline) -> boost::asio::awaitable<std::string> {
    co_return key;
  };
#else
  auto load = [](std::string const& key, redoubt::deadline) { return key; };
#endif
  redoubt::cache_aside<std::string, std::string, test::declared_client> catalog(
      redis, load, {.key = "price:", .ttl = 60s});
}
