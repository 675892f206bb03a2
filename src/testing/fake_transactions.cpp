// SPDX-License-Identifier: BSL-1.0
//
// MULTI, EXEC, DISCARD, WATCH.
#include <algorithm>

#include "fake_commands.hpp"

namespace redoubt::testing::detail {

void discard_transaction(session_state& client) {
  client.in_transaction = false;
  client.spoiled = false;
  client.dirty = false;
  client.queue.clear();
  client.watched.clear();
}

void core::modified(int db, std::string_view key) {
  for (auto& [id, session] : sessions) {
    for (auto const& watched : session.watched) {
      if (watched.db == db && watched.key == key) session.dirty = true;
    }
  }
}

void core::modified_all(int db) {
  for (auto& [id, session] : sessions) {
    for (auto const& watched : session.watched) {
      if (db < 0 || watched.db == db) session.dirty = true;
    }
  }
}

namespace commands {

void multi(call& c) {
  if (c.client.in_transaction) return c.out.error("ERR MULTI calls can not be nested");
  c.client.in_transaction = true;
  c.out.ok();
}

void discard(call& c) {
  if (!c.client.in_transaction) return c.out.error("ERR DISCARD without MULTI");
  discard_transaction(c.client);
  c.out.ok();
}

void watch(call& c) {
  if (c.client.in_transaction) return c.out.error("ERR WATCH inside MULTI is not allowed");
  for (std::size_t i = 1; i < c.args.size(); ++i) {
    c.client.watched.push_back({c.client.db, c.args[i], c.find(c.args[i]) == nullptr});
  }
  c.out.ok();
}

void unwatch(call& c) {
  c.client.watched.clear();
  c.client.dirty = false;
  c.out.ok();
}

void exec(call& c) {
  auto& client = c.client;
  if (!client.in_transaction) return c.out.error("ERR EXEC without MULTI");
  // A key that was there when it was watched and has expired since counts as changed, though nobody touched
  // it.
  bool const expired = std::any_of(client.watched.begin(), client.watched.end(), [&c](watched_key const& w) {
    return !w.was_missing && c.server.data.find(w.db, w.key, c.ms()) == nullptr;
  });
  bool const spoiled = client.spoiled;
  bool const dirty = client.dirty || expired;
  auto const queue = std::move(client.queue);
  discard_transaction(client);
  if (spoiled) return c.out.error("EXECABORT Transaction discarded because of previous errors.");
  if (dirty) return c.out.nil_array();
  c.out.array(queue.size());
  for (auto const& one : queue) {
    call inner{c.server, client, one.args, *one.spec, c.now};
    ++c.server.commands;
    c.server.executed.push_back(one.logged);
    one.spec->run(inner);
    c.out.raw(inner.out.bytes());
  }
}

}  // namespace commands
}  // namespace redoubt::testing::detail
