// SPDX-License-Identifier: BSL-1.0
// A breaker that is asked and whose answer is thrown away protects nothing.
// expect: nodiscard|unused-result|ignoring return value
#pragma GCC diagnostic error "-Wunused-result"
#include <redoubt/guard/breaker.hpp>

void call(redoubt::breaker& b, redoubt::time_point now) {
#ifdef SHOULD_COMPILE
  auto permit = b.try_acquire(now);
  if (permit) permit->record(redoubt::result<int>(1), now);
#else
  b.try_acquire(now);
#endif
}
