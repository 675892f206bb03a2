// SPDX-License-Identifier: BSL-1.0
#include <redoubt/testing/fake_server.hpp>

#include <utility>

#include "fake_lua.hpp"
#include "fake_server_impl.hpp"

namespace redoubt::testing {

fake_server::fake_server(fake_server_options options) : impl_(std::make_unique<impl>(std::move(options))) {
  auto const& o = impl_->server.options;
  if (!o.password.empty()) require_password(o.user, o.password);
}

fake_server::~fake_server() = default;
fake_server::fake_server(fake_server&&) noexcept = default;
fake_server& fake_server::operator=(fake_server&&) noexcept = default;

bool fake_server::accepts() const noexcept { return !impl_->server.state.killed; }
bool fake_server::paused() const noexcept { return impl_->server.state.paused; }

fake_server::session fake_server::open(time_point now) {
  on_time(now);
  auto& server = impl_->server;
  auto const id = ++server.last_session;
  server.sessions.try_emplace(id, id, server.options.argument_bytes_max);
  if (server.state.paused) {
    impl_->backlog.push_back({impl::unread::kind::opened, id, {}});
  } else {
    impl_->accept(id);
  }
  impl_->notify();
  return id;
}

void fake_server::on_bytes(session from, std::string_view bytes, time_point now) {
  on_time(now);
  if (impl_->server.state.paused) {
    if (impl_->find(from) != nullptr)
      impl_->backlog.push_back({impl::unread::kind::bytes, from, std::string(bytes)});
  } else {
    impl_->receive(from, bytes, now);
    on_time(now);  // CLIENT UNPAUSE lets go what was held
  }
  impl_->notify();
}

void fake_server::on_closed(session from, time_point now) {
  on_time(now);
  if (impl_->server.state.paused) {
    impl_->backlog.push_back({impl::unread::kind::closed, from, {}});
  } else {
    impl_->peer_closed(from);
  }
  impl_->notify();
}

std::vector<fake_server::output> fake_server::take_output() { return std::exchange(impl_->outputs, {}); }

std::optional<time_point> fake_server::next_wakeup() const {
  auto const& state = impl_->server.state;
  return state.paused || state.killed ? std::nullopt : state.held_until;
}

void fake_server::on_time(time_point now) {
  auto& state = impl_->server.state;
  if (state.paused || state.killed || !state.held_until || *state.held_until > now) return;
  state.held_until.reset();
  impl_->release_held(now);
  impl_->notify();
}

void fake_server::set_wake(std::function<void()> wake) { impl_->wake = std::move(wake); }

void fake_server::pause() {
  if (!impl_->server.state.killed) impl_->server.state.paused = true;
}

void fake_server::resume(time_point now) {
  auto& server = impl_->server;
  if (!server.state.paused) return;
  server.state.paused = false;
  on_time(now);
  for (auto& item : std::exchange(impl_->backlog, {})) {
    switch (item.what) {
      case impl::unread::kind::opened: impl_->accept(item.from); break;
      case impl::unread::kind::bytes: impl_->receive(item.from, item.bytes, now); break;
      case impl::unread::kind::closed: impl_->peer_closed(item.from); break;
    }
  }
  if (impl_->wake) impl_->wake();
}

void fake_server::kill() {
  auto& server = impl_->server;
  for (auto const& [id, client] : server.sessions) impl_->outputs.push_back({id, {}, {}, false, true});
  server.sessions.clear();
  impl_->backlog.clear();
  server.reset();
  server.state.killed = true;
  impl_->notify();
}

void fake_server::restart(time_point now) {
  if (!impl_->server.state.killed) kill();
  impl_->server.state = {};
  on_time(now);
}

void fake_server::become_replica() { impl_->server.state.replica = true; }

void fake_server::become_primary() {
  impl_->server.state.replica = false;
  impl_->server.state.primary_lost = false;
}

void fake_server::lose_primary(bool lost) {
  if (lost) impl_->server.state.replica = true;
  impl_->server.state.primary_lost = lost;
}

void fake_server::fill_memory() { impl_->server.state.full = true; }
void fake_server::free_memory() { impl_->server.state.full = false; }
void fake_server::start_loading() { impl_->server.state.loading = true; }
void fake_server::finish_loading() { impl_->server.state.loading = false; }
void fake_server::start_busy() { impl_->server.state.busy = true; }
void fake_server::finish_busy() { impl_->server.state.busy = false; }
void fake_server::too_few_replicas(bool on) { impl_->server.state.too_few_replicas = on; }
void fake_server::fail_snapshots(bool on) { impl_->server.state.snapshots_fail = on; }
void fake_server::cluster_down(bool on) { impl_->server.state.cluster_without_slots = on; }

void fake_server::pause_writes(time_point until) {
  impl_->server.state.held_until = until;
  impl_->server.state.hold_all = false;
  impl_->notify();
}

void fake_server::close_sessions() {
  for (auto const& [id, client] : impl_->server.sessions) impl_->outputs.push_back({id, {}, {}, true, false});
  impl_->server.sessions.clear();
  impl_->notify();
}

void fake_server::flush_scripts() {
  impl_->server.scripts.clear();
  impl_->server.engine.reset();
}

void fake_server::require_password(std::string user, std::string password) {
  auto& users = impl_->server.users;
  auto& standard = users["default"];
  if (user.empty() || user == "default") {
    standard.needs_password = !password.empty();
    standard.password = std::move(password);
    standard.enabled = true;
    return;
  }
  standard.enabled = false;
  users[std::move(user)] = detail::user{.password = std::move(password)};
}

void fake_server::add_user(limited_user added) {
  auto& place = impl_->server.users[added.name];
  place = detail::user{.password = std::move(added.password), .key_prefix = std::move(added.key_prefix)};
  for (auto& name : added.refused_commands) place.refused.insert(std::move(name));
}

}  // namespace redoubt::testing
