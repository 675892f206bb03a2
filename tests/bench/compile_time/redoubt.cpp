// SPDX-License-Identifier: BSL-1.0
//
// The same with one call of the client.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <redoubt/client.hpp>

namespace asio = boost::asio;

asio::awaitable<void> one_call(redoubt::client& redis) {
  (void)co_await redis.async_call(redoubt::command("GET", "key"));
}

int main() {
  asio::io_context context;
  redoubt::client redis(context, {});
  asio::co_spawn(context, one_call(redis), asio::detached);
  context.run();
}
