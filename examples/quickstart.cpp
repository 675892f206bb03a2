// SPDX-License-Identifier: BSL-1.0
//
// The first steps: connect, write, read, and see what a failure says. Usage: quickstart [URL]
#include <chrono>
#include <iostream>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <redoubt/client.hpp>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<int> greet(std::string url) {
  auto const executor = co_await asio::this_coro::executor;
  redoubt::client redis(executor, {.url = url});  // nothing is sent yet

  // Every call ends within 150 ms unless it says otherwise, and gives a value or the reason why there is
  // none.
  auto stored =
      co_await redis.async_call(redoubt::command("SET", "greeting", "Hello from Redis", "PX", 60'000));
  if (!stored) {
    std::cout << "The greeting was not stored: " << stored.error() << "\n"
              << "Is there a Redis? Start `redis-server`, or say where: examples/run.sh quickstart "
                 "redis://HOST:PORT\n";
    co_return 1;
  }
  auto got = co_await redis.async_call(redoubt::command("GET", "greeting"), {.budget = 50ms});
  if (auto text = redoubt::decode<std::string>(std::move(got))) std::cout << "Redis says: " << *text << "\n";

  // Nothing listens on port 1: the failure says what, where, and whether Redis may have executed the command.
  redoubt::client nobody(executor, {.url = "redis://127.0.0.1:1"});
  auto missed = co_await nobody.async_call(redoubt::command("GET", "greeting"));
  if (!missed) std::cout << "Nobody there: " << missed.error() << "\n";

  auto const numbers = redis.snapshot();
  std::cout << "Connection " << numbers.state << ", " << numbers.answered << " calls answered, "
            << numbers.in_flight << " in flight\n";
  co_await redis.async_close(100ms);  // lets what is under way end
  co_return 0;
}

int main(int argc, char** argv) {
  try {
    asio::io_context io;
    auto status = asio::co_spawn(io, greet(argc > 1 ? argv[1] : "redis://127.0.0.1:6379"), asio::use_future);
    io.run();
    return status.get();
  } catch (std::exception const& error) {  // an option that is out of range, such as a URL that is none
    std::cerr << "quickstart: " << error.what() << "\n";
    return 2;
  }
}
