// A route of a service, written against redoubt's client concept so that its test can hand it a fake.
#pragma once

#include <string>

#include <redoubt/client.hpp>
#include <redoubt/policy/rate_limiter.hpp>

template <redoubt::redis_client Client = redoubt::client>
class sign_in_route {
 public:
  explicit sign_in_route(Client& redis)
      : attempts_(redis, {.key = "login:", .limit = 5, .window = std::chrono::minutes(1)}) {}

  /// The HTTP status.
  redoubt::asio::awaitable<int> operator()(std::string account) {
    auto decision = co_await attempts_.admit(account);
    switch (decision.verdict()) {
      case redoubt::verdict::refused: co_return 429;
      case redoubt::verdict::unavailable: co_return 503;
      case redoubt::verdict::admitted: break;
    }
    co_return 200;
  }

 private:
  redoubt::rate_limiter<redoubt::fixed_window, redoubt::fail_closed, Client> attempts_;
};
