// SPDX-License-Identifier: BSL-1.0
//
// What the fake server tells a test: the commands it read, and its data.
#include <algorithm>
#include <chrono>

#include "fake_server_impl.hpp"

namespace redoubt::testing {

std::uint64_t fake_server::impl::note(session from, detail::arguments const& args, time_point now) {
  ++counts[detail::lower(args[0])];
  log.push_back({from, args, now, false});
  // Half of it at a time, so that a long run does not move everything for each command.
  auto const limit = std::max<std::size_t>(server.options.log_limit, 1);
  if (log.size() >= 2 * limit) {
    log.erase(log.begin(), log.end() - static_cast<std::ptrdiff_t>(limit));
    log_first += limit;
  }
  return log_first + log.size() - 1;
}

void fake_server::impl::note_executed() {
  for (auto const number : server.executed) {
    if (number >= log_first && number - log_first < log.size()) {
      log[static_cast<std::size_t>(number - log_first)].executed = true;
    }
  }
  server.executed.clear();
}

std::vector<fake_server::received> const& fake_server::log() const { return impl_->log; }

void fake_server::clear_log() {
  impl_->log_first += impl_->log.size();
  impl_->log.clear();
  impl_->counts.clear();
}

std::size_t fake_server::count(std::string_view command_name) const {
  if (!command_name.empty()) {
    auto const found = impl_->counts.find(detail::lower(command_name));
    return found == impl_->counts.end() ? 0 : found->second;
  }
  std::size_t all = 0;
  for (auto const& [name, number] : impl_->counts) all += number;
  return all;
}

std::size_t fake_server::sessions() const { return impl_->server.sessions.size(); }
std::size_t fake_server::sessions_opened() const {
  return static_cast<std::size_t>(impl_->server.last_session);
}

std::optional<std::string> fake_server::get(std::string_view key, time_point now, int db) const {
  auto const& server = impl_->server;
  auto const* const e = server.data.find(db, key, server.unix_ms(now));
  auto const* const text = e == nullptr ? nullptr : std::get_if<std::string>(&e->data);
  if (text == nullptr) return std::nullopt;
  return *text;
}

void fake_server::set(std::string_view key, std::string_view value, time_point now, duration ttl, int db) {
  auto& server = impl_->server;
  auto& e = server.data.put(db, key, std::string(value));
  if (ttl > duration::zero())
    e.expires_at = server.unix_ms(now) + std::chrono::ceil<std::chrono::milliseconds>(ttl).count();
  server.modified(db, key);
}

std::optional<duration> fake_server::ttl(std::string_view key, time_point now, int db) const {
  auto const& server = impl_->server;
  auto const* const e = server.data.find(db, key, server.unix_ms(now));
  if (e == nullptr || !e->expires_at) return std::nullopt;
  return std::chrono::milliseconds(*e->expires_at - server.unix_ms(now));
}

bool fake_server::exists(std::string_view key, time_point now, int db) const {
  return impl_->server.data.find(db, key, impl_->server.unix_ms(now)) != nullptr;
}

std::size_t fake_server::size(time_point now, int db) const { return keys(now, db).size(); }

std::vector<std::string> fake_server::keys(time_point now, int db) const {
  return impl_->server.data.keys(db, impl_->server.unix_ms(now));
}

}  // namespace redoubt::testing
