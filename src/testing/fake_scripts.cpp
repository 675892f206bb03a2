// SPDX-License-Identifier: BSL-1.0
//
// EVAL, EVALSHA and SCRIPT.
#include <redoubt/resp/script.hpp>

#include "fake_commands.hpp"
#include "fake_lua.hpp"

namespace redoubt::testing::detail::commands {
namespace {

script_engine& engine(call& c) {
  if (!c.server.engine) c.server.engine = std::make_unique<script_engine>(c.server);
  return *c.server.engine;
}

// Compiles a script unless it is known; its SHA-1, or nothing with the error written.
std::optional<std::string> load(call& c, std::string const& body) {
  auto const sha1 = script(body).sha1();
  if (c.server.scripts.contains(sha1)) return sha1;
  if (auto const error = engine(c).load(sha1, body); !error.empty()) {
    c.out.error(error);
    return std::nullopt;
  }
  c.server.scripts.insert(sha1);
  return sha1;
}

std::optional<std::size_t> number_of_keys(call& c) {
  auto const keys = c.integer(2);
  if (!keys) return std::nullopt;
  if (*keys > static_cast<std::int64_t>(c.args.size()) - 3) {
    c.out.error("ERR Number of keys can't be greater than number of args");
  } else if (*keys < 0) {
    c.out.error("ERR Number of keys can't be negative");
  } else {
    return static_cast<std::size_t>(*keys);
  }
  return std::nullopt;
}

void run(call& c, std::string const& sha1, std::size_t keys) {
  if (c.server.state.replica && c.server.state.primary_lost) return c.out.error(masterdown_error);
  engine(c).run(c, sha1, 3, keys, (c.spec.flags & flag::readonly) != 0);
}

}  // namespace

void eval(call& c) {
  auto const keys = number_of_keys(c);
  if (!keys) return;
  if (auto const sha1 = load(c, c.args[1])) run(c, *sha1, *keys);
}

void evalsha(call& c) {
  constexpr std::string_view noscript = "NOSCRIPT No matching script. Please use EVAL.";
  if (c.args[1].size() != 40) return c.out.error(noscript);
  auto const keys = number_of_keys(c);
  if (!keys) return;
  auto const sha1 = lower(c.args[1]);
  if (!c.server.scripts.contains(sha1)) return c.out.error(noscript);
  run(c, sha1, *keys);
}

void script_load(call& c) {
  if (auto const sha1 = load(c, c.args[2])) c.out.bulk(*sha1);
}

void script_exists(call& c) {
  c.out.array(c.args.size() - 2);
  for (std::size_t i = 2; i < c.args.size(); ++i) c.out.integer(c.server.scripts.contains(c.args[i]) ? 1 : 0);
}

void script_flush(call& c) {
  bool const fine = c.args.size() == 2 ||
                    (c.args.size() == 3 && (is_word(c.args[2], "sync") || is_word(c.args[2], "async")));
  if (!fine) return c.out.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  c.server.scripts.clear();
  c.server.engine.reset();
  c.out.ok();
}

void script_kill(call& c) {
  if (!c.server.state.busy) return c.out.error("NOTBUSY No scripts in execution right now.");
  c.server.state.busy = false;
  c.out.ok();
}

}  // namespace redoubt::testing::detail::commands
