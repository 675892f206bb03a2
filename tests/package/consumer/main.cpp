// A service that links the installed package: one call to a port where nothing listens, which must end with a
// failure that says so, in time and with no effect.
#include <redoubt/client.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <iostream>

using namespace std::chrono_literals;

boost::asio::awaitable<void> ask(redoubt::client& redis, int& status) {
  auto answer = co_await redis.async_call(redoubt::command("PING"), {.budget = 50ms});
  if (answer) {
    std::cout << "somebody answered on port 1\n";
  } else {
    std::cout << answer.error() << '\n';
    if (answer.error().effect == redoubt::effect::none) status = 0;
  }
  co_await redis.async_close();
}

int main() {
  boost::asio::io_context io;
  redoubt::client redis{io, {.address = {.host = "127.0.0.1", .port = 1}}};
  int status = 1;
  boost::asio::co_spawn(io, ask(redis, status), boost::asio::detached);
  io.run();
  return status;
}
