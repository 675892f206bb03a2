// SPDX-License-Identifier: BSL-1.0
// An admission whose route does not say what it does in an outage.
// expect: wrong number of template arguments|too few template arguments
#include <chrono>

#include <redoubt/policy/admission.hpp>

#include "declared_client.hpp"

using namespace std::chrono_literals;

void route(test::declared_client& redis) {
#ifdef SHOULD_COMPILE
  redoubt::admission<redoubt::fail_closed, test::declared_client> payment(redis,
                                                                          {.key = "payment:", .hold = 30s});
#else
  redoubt::admission<> payment(redis, {.key = "payment:", .hold = 30s});
#endif
}
