// SPDX-License-Identifier: BSL-1.0
#include "outage/lab.hpp"

#include <stdexcept>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace outage {
namespace {

using namespace std::chrono_literals;

asio::awaitable<redoubt::time_point> sleep(redoubt::duration time) {
  redoubt::timer clock(co_await asio::this_coro::executor);
  boost::system::error_code ignored;
  co_await clock.async_wait_until(clock.now() + time, asio::redirect_error(asio::use_awaitable, ignored));
  co_return clock.now();
}

asio::awaitable<redoubt::result<redoubt::reply>> call(redoubt::client& redis, redoubt::command cmd) {
  redoubt::result<redoubt::reply> got = co_await redis.async_call(std::move(cmd), {.budget = 1s});
  co_return got;
}

}  // namespace

lab::lab() {
  signals_.add(SIGQUIT);
  signals_.async_wait([this](boost::system::error_code error, int number) {
    if (!error) signal_ = number;
  });
  limit_.async_wait([this](boost::system::error_code error) { too_late_ = !error; });
  start({&primary_, &full_, &replica_, &victim_});
  fill_memory();
  await_replication();
}

void lab::turn() {
  io_.run_one();  // the signals and the limit are always waited for, so there is always something to run
  if (too_late_) throw std::runtime_error("the demonstration did not end within 35 s");
}

void lab::wait(redoubt::duration time) { run(sleep(time)); }

void lab::start(std::vector<redis_server*> const& servers) {
  for (redis_server* server : servers) server->start();
  for (redis_server* server : servers) {
    while (!server->ready()) wait(2ms);
  }
}

void lab::fill_memory() {
  // A short command that makes a large value, so that what the clients' own buffers take does not matter.
  redoubt::client redis(io_, {.url = full_.url()});
  for (int i = 0; i != 16; ++i) {
    redoubt::command grow("SETRANGE", "filling:" + std::to_string(i), 4 << 20, "x");
    auto const grown = run(call(redis, std::move(grow)));
    if (grown) continue;
    if (grown.error().server == redoubt::server_errc::oom) return;
    throw redoubt::call_error(grown.error());
  }
  throw std::runtime_error("redis-server takes 64 MB although it was started with maxmemory 1mb");
}

void lab::await_replication() {
  redoubt::client redis(io_, {.url = replica_.url()});
  for (;;) {
    auto const info = run(call(redis, redoubt::command("INFO", "replication")));
    if (info && info->as_string().find("master_link_status:up") != std::string_view::npos) return;
    wait(5ms);
  }
}

redis_server& lab::server(condition c) noexcept {
  switch (c) {
    case condition::full: return full_;
    case condition::replica: return replica_;
    case condition::killed: return victim_;
    case condition::healthy:
    case condition::paused: break;
  }
  return primary_;
}

void lab::begin(condition c) {
  if (c == condition::paused) primary_.pause();
  if (c == condition::killed) {
    victim_.kill();
    wait(10ms);  // the clients notice
  }
}

void lab::end(condition c) {
  if (c == condition::paused) primary_.resume();
  if (c == condition::killed) start({&victim_});
}

void lab::connect(redoubt::client& redis) {
  auto const pong = run(call(redis, redoubt::command("PING")));
  if (!pong) throw redoubt::call_error(pong.error());
}

}  // namespace outage
