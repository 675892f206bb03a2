// SPDX-License-Identifier: BSL-1.0
// The quota is the provider's; there is no default for it.
// expect: deleted function|no matching|implicitly-deleted|could not convert
#include <redoubt/guard/token_bucket.hpp>

void quota() {
  using namespace std::chrono_literals;
#ifdef SHOULD_COMPILE
  redoubt::token_bucket bucket({.name = "provider", .rate = {.limit = 100, .per = 1min}});
#else
  redoubt::token_bucket bucket({.name = "provider", .rate = {.per = 1min}});
#endif
}
