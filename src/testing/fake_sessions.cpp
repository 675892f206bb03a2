// SPDX-License-Identifier: BSL-1.0
//
// The way of a request through the fake server: bytes, commands, judgement, execution, reply.
#include <algorithm>
#include <iterator>
#include <utility>

#include "fake_server_impl.hpp"

namespace redoubt::testing {

using detail::arguments;
using detail::judgement;
using detail::waiting_command;

detail::session_state* fake_server::impl::find(session id) {
  auto const found = server.sessions.find(id);
  return found == server.sessions.end() ? nullptr : &found->second;
}

void fake_server::impl::accept(session id) {
  auto* const client = find(id);
  if (client == nullptr) return;
  if (server.sessions.size() > server.options.clients_max) {
    finish(id, "-ERR max number of clients reached\r\n", {}, false);
    return;
  }
  client->authenticated = !server.needs_auth();
}

void fake_server::impl::receive(session id, std::string_view bytes, time_point now) {
  auto* const client = find(id);
  if (client == nullptr || client->deaf) return;
  client->input.feed(bytes);
  process(id, now);
}

void fake_server::impl::peer_closed(session id) { server.sessions.erase(id); }

void fake_server::impl::process(session id, time_point now) {
  for (;;) {
    auto* const client = find(id);
    if (client == nullptr || client->deaf || client->held) return;
    auto words = client->input.next(client->authenticated || !server.needs_auth());
    if (!words) {
      if (auto const& error = client->input.error(); !error.empty()) {
        detail::reply_writer reply;
        reply.error("ERR Protocol error: " + error);
        finish(id, reply.take(), {}, false);
      }
      return;
    }
    auto const logged = note(id, *words, now);
    run(id, {*std::move(words), nullptr, logged}, now);
  }
}

void fake_server::impl::run(session id, waiting_command command, time_point now) {
  auto& client = *find(id);
  std::string refusal;
  if (command.spec == nullptr) {
    command.spec = detail::find_command(command.args, refusal);
    if (command.spec != nullptr && !detail::arity_fits(*command.spec, command.args.size())) {
      refusal = detail::arity_error(*command.spec);
    }
    if (!refusal.empty()) client.spoiled = client.in_transaction;
  }
  if (refusal.empty()) {
    auto judged = detail::judge(server, client, *command.spec, command.args);
    if (judged.what == judgement::verdict::hold) {
      client.held = std::move(command);
      return;
    }
    refusal = std::move(judged.error);
  }

  auto* const waiting = match(client, command.args);
  fault const f = waiting == nullptr ? fault{} : *waiting;
  if (waiting != nullptr && --waiting->times == 0) faults.erase(faults.begin() + (waiting - faults.data()));
  if (waiting != nullptr && f.what == fault::kind::silent) {
    client.deaf = client.mute = true;
    return;
  }
  if (waiting != nullptr && f.what == fault::kind::reset_before_execution)
    return finish(id, {}, f.delay, true);
  if (waiting != nullptr && f.what == fault::kind::error) refusal = f.text;

  detail::reply_writer reply;
  if (refusal.empty()) {
    detail::call c{server, client, command.args, *command.spec, now};
    detail::execute(c, command.logged);
    note_executed();
    reply = std::move(c.out);
  } else {
    reply.error(refusal);
  }
  answer(id, reply.take(), f);
}

void fake_server::impl::release_held(time_point now) {
  std::vector<session> held;
  for (auto const& [id, client] : server.sessions) {
    if (client.held) held.push_back(id);
  }
  // In the order in which the commands arrived, not in that of the connections.
  std::sort(held.begin(), held.end(), [this](session a, session b) {
    return server.sessions.at(a).held->logged < server.sessions.at(b).held->logged;
  });
  for (auto const id : held) {
    auto* const client = find(id);
    if (client == nullptr || !client->held) continue;
    auto command = *std::exchange(client->held, std::nullopt);
    run(id, std::move(command), now);
    process(id, now);
  }
}

void fake_server::impl::send(session to, std::string bytes, duration delay) {
  auto const* const client = find(to);
  if (client == nullptr || client->mute || bytes.empty()) return;
  // Replies to commands that came together leave together.
  if (!outputs.empty() && outputs.back().to == to && delay == duration::zero()) {
    outputs.back().bytes += bytes;
  } else {
    outputs.push_back({to, std::move(bytes), delay});
  }
}

void fake_server::impl::finish(session to, std::string bytes, duration delay, bool reset) {
  auto const* const client = find(to);
  if (client == nullptr) return;
  if (!client->mute) outputs.push_back({to, std::move(bytes), delay, !reset, reset});
  server.sessions.erase(to);
}

void fake_server::impl::notify() {
  bool const waits = server.state.held_until.has_value();
  if (wake && (!outputs.empty() || waits)) wake();
}

}  // namespace redoubt::testing
