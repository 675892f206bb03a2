// SPDX-License-Identifier: BSL-1.0
#include "peer.hpp"

namespace bench {
void add_boost_redis(peer_list&, int) {}
}  // namespace bench
