// SPDX-License-Identifier: BSL-1.0
//
// What a coroutine costs to compile with Asio's headers alone.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace asio = boost::asio;

asio::awaitable<void> nothing() { co_return; }

int main() {
  asio::io_context context;
  asio::co_spawn(context, nothing(), asio::detached);
  context.run();
}
