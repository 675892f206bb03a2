// SPDX-License-Identifier: BSL-1.0
#include "peer.hpp"

namespace bench {
void add_redis_plus_plus(peer_list&, int) {}
}  // namespace bench
