// SPDX-License-Identifier: BSL-1.0
//
// What a policy asks of a client. `redoubt::client` satisfies it, and so does `testing::fake_client`; a route
// that is a template over it runs with either.
#pragma once

#include <concepts>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/deferred.hpp>

#include <redoubt/core/call_options.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/resp/command.hpp>
#include <redoubt/resp/reply.hpp>
#include <redoubt/resp/script.hpp>

namespace redoubt {

class client;

/// A client as the policies see it. Operations are Asio initiating functions: `async_call` completes with
/// `result<reply>`, `async_pipeline` with one `result<reply>` per command, `async_eval` with `result<reply>`
/// and puts `key_prefix()` before each key by itself.
template <class Client>
concept redis_client =
    requires(Client& c, Client const& cc, command cmd, pipeline batch, script const& s, keys k, args a) {
      /// Where operations complete by default; its context is also where policies take the time from.
      { cc.get_executor() } -> std::convertible_to<boost::asio::any_io_executor>;
      /// Put before each key by the policies.
      { cc.key_prefix() } -> std::convertible_to<std::string_view>;
      /// The longest that one call without a budget of its own can take.
      { cc.call_timeout() } -> std::convertible_to<duration>;
      c.async_call(std::move(cmd), call_options{}, boost::asio::deferred);
      c.async_pipeline(std::move(batch), call_options{}, boost::asio::deferred);
      c.async_eval(s, std::move(k), std::move(a), call_options{}, boost::asio::deferred);
    };

/// True for a client that may send one call more than once because its owner allowed it (`retrying`).
/// Policies whose command must not be executed twice refuse to stand on one.
template <class Client>
concept repeats_calls = requires { requires Client::repeats_calls; };

}  // namespace redoubt
