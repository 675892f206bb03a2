// SPDX-License-Identifier: BSL-1.0
//
// A client that is only declared: enough to compile a route that is never run.
#pragma once

#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <redoubt/core/call_options.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/resp/command.hpp>
#include <redoubt/resp/reply.hpp>
#include <redoubt/resp/script.hpp>

namespace test {

/// Satisfies `redoubt::redis_client`; every operation gives an awaitable whatever the token.
struct declared_client {
  using answer = boost::asio::awaitable<redoubt::result<redoubt::reply>>;
  using answers = boost::asio::awaitable<std::vector<redoubt::result<redoubt::reply>>>;

  boost::asio::any_io_executor get_executor() const;
  std::string_view key_prefix() const;
  redoubt::duration call_timeout() const;
  template <class Token>
  answer async_call(redoubt::command, redoubt::call_options, Token&&);
  template <class Token>
  answers async_pipeline(redoubt::pipeline, redoubt::call_options, Token&&);
  template <class Token>
  answer async_eval(redoubt::script const&, redoubt::keys, redoubt::args, redoubt::call_options, Token&&);
};

}  // namespace test
