// SPDX-License-Identifier: BSL-1.0
#include "guarded_call/provider.hpp"

#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

namespace guarded_call {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

std::vector<payment> payments() {
  using enum behaviour;
  return {{"all is well", {}, 1, true},
          {"503 twice", {unavailable, unavailable}, 3, true},
          {"429, Retry-After: 1", {too_many}, 2, true},
          {"the reply is lost", {lose_reply}, 2, true},
          {"no answer", {stay_silent}, 2, true},
          {"the card is refused", {card_refused}, 1, false},
          {"nobody there", {gone}, 0, false},
          {"still nobody there", {gone}, 0, false}};
}

provider::provider(asio::io_context& context)
    : acceptor_(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
      endpoint_(acceptor_.local_endpoint()) {
  asio::co_spawn(context, accept(), asio::detached);
}

void provider::begin(std::deque<behaviour> script) {
  script_ = std::move(script);
  charges_ = requests_ = 0;
  if (!script_.empty() && script_.front() == behaviour::gone) stop();
}

asio::awaitable<void> provider::accept() {
  for (;;) {
    boost::system::error_code error;
    tcp::socket peer = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    asio::co_spawn(acceptor_.get_executor(), serve(std::move(peer)), asio::detached);
  }
}

asio::awaitable<void> provider::serve(tcp::socket peer) {
  boost::beast::flat_buffer buffer;
  http::request<http::string_body> request;
  boost::system::error_code error;
  co_await http::async_read(peer, buffer, request, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return;
  ++requests_;
  auto next = behaviour::charge;
  if (!script_.empty()) {
    next = script_.front();
    script_.pop_front();
  }

  http::response<http::string_body> answer(http::status::ok, 11);
  bool const charges =
      next == behaviour::charge || next == behaviour::lose_reply || next == behaviour::stay_silent;
  std::string const key(request["Idempotency-Key"]);
  if (charges && receipts_.contains(key)) {
    answer.set("Idempotent-Replayed", "true");
  } else if (charges) {
    ++charges_;
    receipts_.emplace(key, "receipt " + std::to_string(receipts_.size() + 1));
  }
  if (charges) answer.body() = receipts_[key];
  switch (next) {
    case behaviour::charge:
    case behaviour::gone: break;
    case behaviour::unavailable: answer.result(http::status::service_unavailable); break;
    case behaviour::too_many:
      answer.result(http::status::too_many_requests);
      answer.set(http::field::retry_after, "1");
      break;
    case behaviour::lose_reply: co_return;
    case behaviour::stay_silent: {
      char rest = 0;  // until the other side gives up
      co_await peer.async_read_some(asio::buffer(&rest, 1), asio::redirect_error(asio::use_awaitable, error));
      co_return;
    }
    case behaviour::card_refused: answer.result(http::status::payment_required); break;
  }
  answer.prepare_payload();
  co_await http::async_write(peer, answer, asio::redirect_error(asio::use_awaitable, error));
}

}  // namespace guarded_call
