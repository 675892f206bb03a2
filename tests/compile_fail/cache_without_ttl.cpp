// SPDX-License-Identifier: BSL-1.0
// An entry's life has no default.
// expect: required|could not convert
#include <chrono>

#include <redoubt/policy/cache_aside_options.hpp>

using namespace std::chrono_literals;

redoubt::cache_aside_options options() {
#ifdef SHOULD_COMPILE
  return {.key = "price:", .ttl = 60s};
#else
  return {.key = "price:"};
#endif
}
