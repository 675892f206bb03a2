// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>

#include "sender.hpp"

namespace bench {

/// hiredis async over libuv; null where libuv is not installed.
[[nodiscard]] std::unique_ptr<sender> make_libuv_sender(int port);

}  // namespace bench
