// SPDX-License-Identifier: BSL-1.0
#include <redoubt/tls.hpp>

#include "net/tls_connection.hpp"

namespace redoubt {

void enable_tls() noexcept { detail::set_tls_connection_maker(&detail::make_tls_connections); }

}  // namespace redoubt
