// SPDX-License-Identifier: BSL-1.0
//
// The four parts of the demonstration. Each leaves all servers of the lab well.
#pragma once

#include "outage/lab.hpp"
#include "outage/report.hpp"

namespace outage {

/// How long a call takes while Redis is paused: alone, with retries, with retries under a limit.
void measure_waits(lab& where, report& to);

/// What a PING and a write probe say about each kind of server.
void compare_probes(lab& where, report& to);

/// What each route of the shop answers in each condition.
void tour_routes(lab& where, report& to);

/// The named expectations, one by one.
void check_expectations(lab& where, report& to);

}  // namespace outage
