// SPDX-License-Identifier: BSL-1.0
#include <redoubt/client.hpp>

namespace redoubt {

client::client(asio::any_io_executor executor, client_options options)
    : state_(std::make_shared<detail::client_state>(std::move(executor), std::move(options))) {}

client::~client() { state_->shut(); }

}  // namespace redoubt
