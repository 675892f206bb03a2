// SPDX-License-Identifier: BSL-1.0
//
// What all ways of using this library have in common.
#pragma once

#include <cstddef>

#include <redoubt/client.hpp>

#include "peer.hpp"

namespace bench {

/// The defaults, but for the port.
[[nodiscard]] redoubt::client_options options_for(int port);

/// The command of the load for key `i`.
[[nodiscard]] redoubt::command command_for(run_meter const& meter, std::size_t i);

/// Counts the reply and compares it with what key `i` holds.
void judge_redoubt(run_meter& meter, redoubt::result<redoubt::reply> const& r, std::size_t i);

}  // namespace bench
