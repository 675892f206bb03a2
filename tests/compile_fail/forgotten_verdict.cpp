// SPDX-License-Identifier: BSL-1.0
// A switch over the verdict that forgets the outage.
// expect: unavailable.* not handled in switch|enumeration value
#pragma GCC diagnostic error "-Wswitch"
#include <redoubt/policy/fail_mode.hpp>

int status(redoubt::verdict v) {
  switch (v) {
    case redoubt::verdict::admitted: return 200;
    case redoubt::verdict::refused: return 429;
#ifdef SHOULD_COMPILE
    case redoubt::verdict::unavailable: return 503;
#endif
  }
  return 500;
}
