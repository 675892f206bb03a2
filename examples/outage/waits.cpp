// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <redoubt/policy/retrying.hpp>

#include "outage/checks.hpp"

namespace outage {
namespace {

using namespace std::chrono_literals;

template <class Client>
asio::awaitable<redoubt::result<redoubt::reply>> get(Client& redis, redoubt::call_options options) {
  redoubt::result<redoubt::reply> got = co_await redis.async_call(redoubt::command("GET", "price"), options);
  co_return got;
}

/// The median wait of a call that is made while Redis is paused, on a connection that was well before.
template <class Client>
double median_wait(lab& where, redoubt::client& redis, Client& through, redoubt::call_options options = {}) {
  std::vector<double> waits;
  for (int i = 0; i != 3; ++i) {
    where.connect(redis);
    where.begin(condition::paused);
    auto const got = where.run(with_time(get(through, options)));
    where.end(condition::paused);
    if (got.value) throw std::runtime_error("a paused Redis answered");
    waits.push_back(milliseconds(got.took));
  }
  std::sort(waits.begin(), waits.end());
  return waits[waits.size() / 2];
}

}  // namespace

void measure_waits(lab& where, report& to) {
  redoubt::client redis(where.context(), {.url = where.server(condition::paused).url(),
                                          .timeouts = {.connect = 100ms, .attempt = 100ms, .call = 150ms}});
  // A GET may be executed twice, so it may be repeated even when Redis may have executed it. Each attempt has
  // the client's limits; the pauses between them are 15 ms on average.
  redoubt::retrying<redoubt::client> persistent(
      redis,
      {.retry = {.retries = 2, .pause = {.base = 20ms, .cap = 40ms}}, .calls = redoubt::repeat::idempotent});
  to.begin_waits();
  to.add({"one_attempt_ms", "one attempt of 100 ms", median_wait(where, redis, redis), 95, 130});
  to.add({"two_retries_ms", "and two retries", median_wait(where, redis, persistent), 300, 420});
  to.add({"capped_ms", "and 150 ms for all of it", median_wait(where, redis, persistent, {.budget = 150ms}),
          145, 180});
}

}  // namespace outage
