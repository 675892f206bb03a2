// SPDX-License-Identifier: BSL-1.0
//
// GET /health/redis: can Redis do what login and payment need? A PING cannot tell.
#pragma once

#include <string>

#include <boost/asio/awaitable.hpp>

#include <redoubt/client.hpp>
#include <redoubt/policy/write_probe.hpp>

#include "shop/response.hpp"

namespace shop {

namespace asio = boost::asio;

/// For dashboards and alerts. It is not the shop's readiness: without Redis the catalog still sells, and
/// login and payment refuse with their own words. Never use it for liveness: a restart does not repair Redis.
template <redoubt::redis_client Client = redoubt::client>
class health {
 public:
  explicit health(Client& redis) : probe_(redis, {.key = "health:write"}) {}

  asio::awaitable<response> check(redoubt::deadline by = {}) {
    redoubt::probe_report const found = co_await probe_.report(by);
    if (found.healthy()) co_return response{200, "Redis reads and writes", "writes"};
    std::string const cause(found.cause_text());
    if (!found.answers) co_return response{503, "Redis does not answer", "no answer: " + cause};
    co_return response{503, "Redis does not take writes", "no writes: " + cause};
  }

  /// The longest that `check` takes.
  [[nodiscard]] redoubt::duration worst_case() const { return probe_.worst_case(); }

 private:
  redoubt::write_probe<Client> probe_;
};

}  // namespace shop
