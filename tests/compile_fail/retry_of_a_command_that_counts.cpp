// SPDX-License-Identifier: BSL-1.0
// INCR executed twice counts twice: it is no idempotent command.
// expect: this_command_is_not_idempotent
#include <redoubt/policy/retrying.hpp>

#include "declared_client.hpp"

namespace asio = boost::asio;

asio::awaitable<bool> route(redoubt::retrying<test::declared_client>& redis) {
#ifdef SHOULD_COMPILE
  auto got = co_await redis.async_idempotent(redoubt::idempotent_command("SET", "k", "v"));
#else
  auto got = co_await redis.async_idempotent(redoubt::idempotent_command("INCR", "k"));
#endif
  co_return got.has_value();
}
