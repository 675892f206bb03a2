// SPDX-License-Identifier: BSL-1.0
//
// A client whose answers the test decides, call by call, under virtual time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/async/run.hpp>
#include <redoubt/core/call_options.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/resp/command.hpp>
#include <redoubt/resp/reader.hpp>
#include <redoubt/resp/reply.hpp>
#include <redoubt/resp/script.hpp>

namespace test {

namespace asio = boost::asio;

using words = std::vector<std::string>;

/// How a call ends: with this, so much later. `never` stays silent until the call's own limit.
struct answer {
  redoubt::result<redoubt::reply> what{redoubt::reply()};
  redoubt::duration after{};
  bool never = false;
};

inline answer ok() { return {redoubt::reply(redoubt::status_line{"OK"})}; }
inline answer nil() { return {redoubt::reply()}; }
inline answer text(std::string t) { return {redoubt::reply(std::move(t))}; }
inline answer number(std::int64_t n) { return {redoubt::reply(n)}; }
inline answer pair(std::int64_t a, std::int64_t b) {
  return {redoubt::reply(redoubt::reply::array{redoubt::reply(a), redoubt::reply(b)})};
}
inline answer silence() { return {redoubt::reply(), {}, true}; }

/// A failure as the client gives it.
inline answer fails(redoubt::errc code, redoubt::effect effect = redoubt::effect::none) {
  redoubt::failure f;
  f.code = code;
  f.effect = effect;
  return {f};
}

/// An error line of the server.
inline answer says(std::string line) {
  auto const error = redoubt::parse_server_error(line);
  redoubt::failure f;
  f.code = redoubt::errc::server_error;
  f.server = error.code;
  f.effect = error.effect;
  f.phase = redoubt::phase::done;
  f.attempts = 1;
  return {f};
}

/// Satisfies `redoubt::redis_client`. Single-threaded.
class stub_client {
 public:
  explicit stub_client(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  /// Decides the answer to a command; by default PONG, and everything else is silence.
  std::function<answer(words const&)> on_call = [](words const& w) {
    return w[0] == "PING" ? answer{redoubt::reply(redoubt::status_line{"PONG"})} : silence();
  };
  /// Everything that was sent.
  std::vector<words> seen;
  std::string prefix;
  redoubt::duration attempt_timeout = std::chrono::milliseconds(100);
  redoubt::duration timeout = std::chrono::milliseconds(150);

  [[nodiscard]] std::size_t count(std::string_view name) const {
    std::size_t n = 0;
    for (auto const& w : seen) n += w[0] == name;
    return n;
  }

  [[nodiscard]] asio::any_io_executor get_executor() const { return executor_; }
  [[nodiscard]] std::string_view key_prefix() const { return prefix; }
  [[nodiscard]] redoubt::duration call_timeout() const { return timeout; }

  template <class Token = asio::deferred_t>
  auto async_call(redoubt::command cmd, redoubt::call_options o = {}, Token&& token = Token{}) {
    words w;
    for (std::size_t i = 0; i < cmd.size(); ++i) w.emplace_back(cmd[i]);
    auto work = [this, w = std::move(w), o]() mutable { return one(std::move(w), o); };
    return redoubt::async_run<redoubt::result<redoubt::reply>>(executor_, std::move(work),
                                                               std::forward<Token>(token));
  }

  template <class Token = asio::deferred_t>
  auto async_eval(redoubt::script const& s, redoubt::keys k, redoubt::args a, redoubt::call_options o = {},
                  Token&& token = Token{}) {
    return async_call(redoubt::eval_command(s, k, a, prefix, true), o, std::forward<Token>(token));
  }

  template <class Token = asio::deferred_t>
  auto async_pipeline(redoubt::pipeline batch, redoubt::call_options o = {}, Token&& token = Token{}) {
    auto work = [this, batch = std::move(batch), o]() { return several(batch, o); };
    return redoubt::async_run<std::vector<redoubt::result<redoubt::reply>>>(executor_, std::move(work),
                                                                            std::forward<Token>(token));
  }

 private:
  using result_type = redoubt::result<redoubt::reply>;

  [[nodiscard]] redoubt::deadline limit(redoubt::call_options const& o) const {
    return earlier(o.by, redoubt::deadline_after(executor_, o.budget.value_or(attempt_timeout)));
  }

  asio::awaitable<result_type> one(words w, redoubt::call_options o) {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    redoubt::deadline const by = limit(o);
    result_type out = co_await answered(std::move(w), by);
    co_return out;
  }

  asio::awaitable<std::vector<result_type>> several(redoubt::pipeline batch, redoubt::call_options o) {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    redoubt::deadline const by = limit(o);
    redoubt::reader parse;
    parse.feed(batch.wire());
    std::vector<result_type> out;
    while (auto next = parse.next()) {
      words w;
      for (auto const& part : next->as_array()) w.emplace_back(part.as_string());
      result_type got = co_await answered(std::move(w), by);
      out.push_back(std::move(got));
    }
    co_return out;
  }

  asio::awaitable<result_type> answered(words w, redoubt::deadline by) {
    redoubt::timer clock(executor_);
    redoubt::time_point const start = clock.now();
    redoubt::failure f;
    f.command = redoubt::command_name(w[0]);
    f.code = redoubt::errc::deadline_exceeded;
    f.effect = redoubt::effect::none;
    result_type late(f);
    if (by.passed(start)) co_return late;

    seen.push_back(w);
    answer a = on_call(seen.back());
    redoubt::time_point const when = redoubt::saturating_add(start, a.after);
    bool const in_time = !a.never && when <= by.at();
    if (!in_time || a.after > redoubt::duration::zero()) {
      boost::system::error_code stopped;
      co_await clock.async_wait_until(in_time ? when : by.at(),
                                      asio::redirect_error(asio::use_awaitable, stopped));
      f.effect = redoubt::effect::unknown;
      f.phase = redoubt::phase::read;
      f.attempts = 1;
      f.elapsed = clock.now() - start;
      if (stopped) f.code = redoubt::errc::cancelled;
      late = f;
      if (stopped || !in_time) co_return late;
    }
    co_return std::move(a.what);
  }

  asio::any_io_executor executor_;
};

}  // namespace test
