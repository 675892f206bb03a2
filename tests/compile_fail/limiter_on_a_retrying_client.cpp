// SPDX-License-Identifier: BSL-1.0
// a lost answer may have counted, so a limiter does not stand on a client that repeats calls.
// expect: repeats_calls
#include <redoubt/policy/rate_limiter.hpp>
#include <redoubt/policy/retrying.hpp>

#include "declared_client.hpp"

#ifdef SHOULD_COMPILE
using below = test::declared_client;
#else
using below = redoubt::retrying<test::declared_client>;
#endif

using login = redoubt::rate_limiter<redoubt::fixed_window, redoubt::fail_closed, below>;
bool touch(login const& l) { return l.worst_case() > redoubt::duration::zero(); }
