// SPDX-License-Identifier: BSL-1.0
#include "tls_connection.hpp"

#include "tls_transport.hpp"

namespace redoubt::detail {

std::vector<std::shared_ptr<connection>> make_tls_connections(asio::any_io_executor const& executor,
                                                              client_options const& options,
                                                              std::shared_ptr<load_gate> const& gate) {
  auto const context = std::make_shared<tls_context>(options);
  std::vector<std::shared_ptr<connection>> out;
  for (std::uint32_t i = 0; i < options.connections; ++i) {
    out.push_back(std::make_shared<basic_connection<tls_transport>>(executor, options, gate,
                                                                    connection_seed(), context));
  }
  return out;
}

}  // namespace redoubt::detail
