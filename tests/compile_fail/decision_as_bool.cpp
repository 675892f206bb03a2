// SPDX-License-Identifier: BSL-1.0
// C114: a decision has three values; "if (decision)" would blur refused and unavailable.
// expect: could not convert|no viable conversion|cannot convert|is not contextually convertible
#include <redoubt/policy/decision.hpp>

int status(redoubt::decision<redoubt::fail_closed> const& d) {
#ifdef SHOULD_COMPILE
  return d.verdict() == redoubt::verdict::admitted ? 200 : 503;
#else
  return d ? 200 : 503;
#endif
}
