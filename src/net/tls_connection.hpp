// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <vector>

#include <redoubt/net/connection.hpp>

namespace redoubt::detail {

/// A `tls_connection_maker`.
[[nodiscard]] std::vector<std::shared_ptr<connection>> make_tls_connections(
    asio::any_io_executor const& executor, client_options const& options,
    std::shared_ptr<load_gate> const& gate);

}  // namespace redoubt::detail
