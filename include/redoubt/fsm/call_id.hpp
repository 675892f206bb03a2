// SPDX-License-Identifier: BSL-1.0
//
// The name of a call in a `call_queue`.
#pragma once

#include <cstdint>

namespace redoubt {

/// Names a submitted call; stays unique after the call has ended.
struct call_id {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  friend bool operator==(call_id, call_id) = default;
};

}  // namespace redoubt
