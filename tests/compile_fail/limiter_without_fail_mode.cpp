// SPDX-License-Identifier: BSL-1.0
// A limiter whose route does not say what it does in an outage.
// expect: wrong number of template arguments|too few template arguments
#include <chrono>

#include <redoubt/policy/rate_limiter.hpp>

#include "declared_client.hpp"

using namespace std::chrono_literals;

void route(test::declared_client& redis) {
#ifdef SHOULD_COMPILE
  redoubt::rate_limiter<redoubt::fixed_window, redoubt::fail_closed, test::declared_client> login(
      redis, {.key = "login:", .limit = 5, .window = 60s});
#else
  redoubt::rate_limiter<redoubt::fixed_window> login(redis, {.key = "login:", .limit = 5, .window = 60s});
#endif
}
