// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace redoubt {

/// Names a call submitted to a `call_queue`; stays unique after the call has ended.
struct call_id {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  friend bool operator==(call_id, call_id) = default;
};

}  // namespace redoubt
