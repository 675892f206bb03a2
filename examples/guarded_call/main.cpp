// SPDX-License-Identifier: BSL-1.0
//
// A payment provider over HTTP behind guards that know nothing of HTTP. The provider answers 503, 429 with
// Retry-After, loses a reply, stays silent, refuses a card and goes away; nobody pays twice.
#include <chrono>
#include <iostream>
#include <random>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>
#include <redoubt/format.hpp>
#include <redoubt/guard/breaker.hpp>
#include <redoubt/guard/http.hpp>
#include <redoubt/guard/retry.hpp>
#include <redoubt/guard/stack.hpp>
#include <redoubt/guard/time_limit.hpp>
#include <redoubt/guard/token_bucket.hpp>

#include "guarded_call/provider.hpp"

namespace asio = boost::asio;
namespace http = boost::beast::http;
using namespace std::chrono_literals;
using redoubt::phase;
using redoubt::result;

// One attempt. What went wrong becomes a failure that says whether the provider may have charged.
asio::awaitable<result<std::string>> charge(asio::ip::tcp::endpoint provider, std::string key, int cents) {
  asio::ip::tcp::socket socket(co_await asio::this_coro::executor);
  boost::system::error_code error;
  co_await socket.async_connect(provider, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return redoubt::transport_failure(error, phase::connect);

  http::request<http::string_body> request(http::verb::post, "/charges", 11, std::to_string(cents));
  request.set(http::field::host, "provider");
  request.set("Idempotency-Key", key);
  request.prepare_payload();
  co_await http::async_write(socket, request, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return redoubt::transport_failure(error, phase::write);

  boost::beast::flat_buffer buffer;
  http::response<http::string_body> answer;
  co_await http::async_read(socket, buffer, answer, asio::redirect_error(asio::use_awaitable, error));
  if (error == http::error::end_of_stream || error == http::error::partial_message)
    co_return *redoubt::failure_of(redoubt::call_outcome::partial_response);
  if (error) co_return redoubt::transport_failure(error, phase::read);
  redoubt::http_answer const seen{.status = answer.result_int(),
                                  .retry_after = answer[http::field::retry_after],
                                  .date = answer[http::field::date],
                                  .duplicate = answer.count("Idempotent-Replayed") > 0};
  auto const now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  if (auto failed = redoubt::failure_of(seen, now)) co_return *failed;
  co_return answer.body() + (seen.duplicate ? " (made by an attempt before)" : "");
}

int main() {
  asio::io_context context;
  guarded_call::provider provider(context);

  redoubt::token_bucket quota(
      {.name = "provider quota", .rate = {.limit = 600, .per = 1min, .burst = 20}, .max_wait = 2s});
  redoubt::time_limit in_time({.name = "one attempt", .limit = 800ms});
  redoubt::breaker health({.name = "provider"});
  redoubt::retry_budget budget;
  redoubt::retry again({.retries = 3, .total = 6s, .pause = {.base = 50ms, .cap = 1s}, .attempt_timeout = 1s},
                       budget);

  auto const attempt = [to = provider.endpoint()](std::string const& key, int cents, redoubt::deadline) {
    return charge(to, key, cents);
  };
  auto const guarded = redoubt::start(attempt) | redoubt::through(quota) | redoubt::through(in_time) |
                       redoubt::through(health) | redoubt::through(again, redoubt::repeat::idempotent);
  std::cout << guarded.plan() << '\n';

  bool as_expected = true;
  auto const pay_all = [&]() -> asio::awaitable<void> {
    auto const executor = co_await asio::this_coro::executor;
    std::random_device random;
    for (auto const& each : guarded_call::payments()) {
      provider.begin(each.script);
      auto const key =
          fmt::format("{:08x}{:08x}", random(), random());  // once a payment, not once an attempt
      auto const began = redoubt::now(executor);
      result<std::string> const got = co_await guarded(executor, redoubt::deadline(began + 8s), key, 4200);
      std::cout << fmt::format("{:<20} {:>4} ms, {} requests, charged {}: {}\n", each.name,
                               (redoubt::now(executor) - began) / 1ms, provider.requests(),
                               provider.charges(), got ? *got : got.error().message());
      as_expected = as_expected && got.has_value() == each.paid && provider.requests() == each.requests &&
                    provider.charges() == (each.paid ? 1 : 0);
    }
    provider.stop();
  };
  asio::co_spawn(context, pay_all(), [](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);
  });
  context.run();

  auto const r = again.snapshot();
  auto const b = budget.snapshot();
  auto const q = quota.snapshot();
  std::cout << fmt::format("\nretry: {} attempts for {} payments; budget paid {}, refused {}\n", r.attempts,
                           r.operations, b.granted, b.refused)
            << fmt::format("quota: {} turns, {} waited, held off {}\n", q.granted, q.waited, q.held_off)
            << fmt::format("limit: {} in time, {} ended by it\n", in_time.snapshot().in_time,
                           in_time.snapshot().own)
            << fmt::format("breaker: opened {} times, refused {}\n", health.snapshot().opened,
                           health.snapshot().refused);
  return as_expected ? 0 : 1;
}
