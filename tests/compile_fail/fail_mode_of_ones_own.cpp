// SPDX-License-Identifier: BSL-1.0
// A fail mode that is neither open nor closed.
// expect: constraint
#include <redoubt/policy/admission.hpp>

#include "declared_client.hpp"

struct fail_somehow {};

#ifdef SHOULD_COMPILE
using payment = redoubt::admission<redoubt::fail_open, test::declared_client>;
#else
using payment = redoubt::admission<fail_somehow, test::declared_client>;
#endif

bool touch(payment const& p) { return p.worst_case() > redoubt::duration::zero(); }
