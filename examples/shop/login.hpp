// SPDX-License-Identifier: BSL-1.0
//
// POST /login. Without its limiter a login can be guessed by force: this route fails closed.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include <redoubt/client.hpp>
#include <redoubt/policy/rate_limiter.hpp>

#include "shop/response.hpp"

namespace shop {

namespace asio = boost::asio;

/// One account, one counter: "Ada " and "ada" must not be two. (ASCII only; a real shop folds Unicode too.)
inline std::string normalised(std::string_view account) {
  auto const first = account.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  std::string name(account.substr(first, account.find_last_not_of(" \t") - first + 1));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return name;
}

/// Five attempts per account and minute. It lets anybody lock a known account out for a minute; add a second
/// limiter by the request's source where that matters.
template <redoubt::redis_client Client = redoubt::client>
class login {
 public:
  explicit login(Client& redis)
      : attempts_(redis, {.key = "login:", .limit = 5, .window = std::chrono::seconds(60)}) {}

  asio::awaitable<response> sign_in(std::string account, redoubt::deadline by = {}) {
    auto decision = co_await attempts_.admit(normalised(account), by);
    switch (decision.verdict()) {
      case redoubt::verdict::refused:
        co_return response{429, "Login limit reached", "limit reached", decision.retry_after()};
      case redoubt::verdict::unavailable:
        co_return response{503, "Login protection unavailable", "unavailable: " + cause_of(decision.error())};
      case redoubt::verdict::admitted: break;
    }
    // Only now is the password looked at.
    co_return response{200, "Signed in", "admitted"};
  }

  /// The longest that `sign_in` takes before the password is looked at.
  [[nodiscard]] redoubt::duration worst_case() const { return attempts_.worst_case(); }
  [[nodiscard]] redoubt::rate_limiter_snapshot snapshot() const { return attempts_.snapshot(); }

 private:
  redoubt::rate_limiter<redoubt::fixed_window, redoubt::fail_closed, Client> attempts_;
};

}  // namespace shop
