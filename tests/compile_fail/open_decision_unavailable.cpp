// SPDX-License-Identifier: BSL-1.0
// A limiter that fails open cannot answer "unavailable": the case does not exist.
// expect: unavailable
#include <redoubt/policy/decision.hpp>

bool limited(redoubt::decision<redoubt::fail_open> const& d) {
#ifdef SHOULD_COMPILE
  return d.verdict() == redoubt::open_verdict::refused;
#else
  return d.verdict() == redoubt::open_verdict::unavailable;
#endif
}
