// SPDX-License-Identifier: BSL-1.0
//
// Boost.Redis, where its headers are found: as it is, and with the limit on each call that this library has
// as well.
#include "peer.hpp"

#if defined(REDOUBT_BENCH_BOOST_REDIS)

#include <optional>
#include <tuple>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/redis/connection.hpp>
#include <boost/redis/request.hpp>
#include <boost/redis/response.hpp>
#include <boost/redis/src.hpp>

namespace bench {
namespace {

namespace asio = boost::asio;
namespace redis = boost::redis;

class boost_redis final : public peer {
 public:
  boost_redis(int port, bool limited)
      : limited_(limited),
        connection_(context_.get_executor(), redis::logger{redis::logger::level::disabled, {}}) {
    redis::config where;
    where.addr = {"127.0.0.1", std::to_string(port)};
    connection_.async_run(where, asio::detached);
  }
  ~boost_redis() override {
    connection_.cancel();
    context_.restart();
    context_.run_for(std::chrono::seconds(1));
  }
  [[nodiscard]] std::string_view name() const override {
    return limited_ ? "boost-redis-limited" : "boost-redis";
  }
  [[nodiscard]] std::string_view about() const override {
    return limited_ ? "the same with cancel_after(150 ms) on every call"
                    : "Boost.Redis: async_exec in coroutines, one connection, one thread; no time limit";
  }
  [[nodiscard]] bool takes(cell const& what) const override {
    return what.of->what == shape::get || what.of->what == shape::set;
  }

  sample run(cell const& what, double seconds) override {
    run_meter meter(what, seconds);
    meter_ = &meter;
    open_ = what.in_flight;
    context_.restart();
    for (std::size_t i = 0; i < what.in_flight; ++i) asio::co_spawn(context_, work(), asio::detached);
    context_.run();
    return meter.finish();
  }

 private:
  asio::awaitable<void> work() {
    redis::request question;
    std::optional<redis::response<std::string>> answer;
    while (!meter_->over()) {
      auto const i = meter_->next_key();
      question.clear();
      if (meter_->of().what == shape::set) {
        question.push("SET", meter_->key(i), meter_->value(i));
      } else {
        question.push("GET", meter_->key(i));
      }
      answer.emplace();
      meter_->call_begins();
      boost::system::error_code error;
      if (limited_) {
        std::tie(error, std::ignore) = co_await connection_.async_exec(
            question, *answer,
            asio::cancel_after(std::chrono::milliseconds(150), asio::as_tuple(asio::deferred)));
      } else {
        std::tie(error, std::ignore) =
            co_await connection_.async_exec(question, *answer, asio::as_tuple(asio::deferred));
      }
      meter_->call_ends();
      auto const& got = std::get<0>(*answer);
      if (error) {
        meter_->failed();
      } else if (got.has_error()) {
        meter_->answered_otherwise();
      } else if (meter_->of().what == shape::set) {
        meter_->acknowledged(got.value());
      } else {
        meter_->answered(got.value(), i);
      }
    }
    if (--open_ == 0) context_.stop();
  }

  bool limited_;
  asio::io_context context_{1};
  redis::connection connection_;
  run_meter* meter_ = nullptr;
  std::size_t open_ = 0;
};

}  // namespace

bool add_boost_redis(peer_list& peers, int port) {
  peers.push_back(std::make_unique<boost_redis>(port, false));
  peers.push_back(std::make_unique<boost_redis>(port, true));
  return true;
}

}  // namespace bench

#else

namespace bench {
bool add_boost_redis(peer_list&, int) { return false; }
}  // namespace bench

#endif
