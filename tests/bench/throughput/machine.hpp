// SPDX-License-Identifier: BSL-1.0
//
// Where the measurement runs: the processors, what is installed, and who runs on which processor.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Name and text, for the head of a report.
using facts = std::vector<std::pair<std::string, std::string>>;

/// Processor, memory, kernel.
[[nodiscard]] facts machine_facts();

/// Compiler and libraries, and the server's version.
[[nodiscard]] facts version_facts(int port);

enum class placement { two_cpus, one_cpu, unpinned };

/// Puts this process and every thread of `server` where they belong and says where that is. Falls back to one
/// processor when there is no second one.
std::string place(placement where, pid_t server);

}  // namespace bench
