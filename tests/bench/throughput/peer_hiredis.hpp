// SPDX-License-Identifier: BSL-1.0
//
// What both ways of using hiredis have in common.
#pragma once

#include <cstddef>

#include <hiredis/hiredis.h>

#include "peer.hpp"

namespace bench {

/// Counts the reply and compares it with what key `i` holds.
void judge_hiredis(run_meter& meter, redisReply const& r, std::size_t i);

}  // namespace bench
