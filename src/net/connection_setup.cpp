// SPDX-License-Identifier: BSL-1.0
//
// How a connection core learns that a connection is being made, and how it ends with its context.
#include <redoubt/net/connection_core.hpp>

namespace redoubt::detail {

void connection_core::on_resolved(std::uint64_t epoch) {
  auto const t = port_.now();
  run(life_.on_resolved(epoch, t), t);
  settle(t);
}

void connection_core::on_attempt_failed(std::uint64_t epoch, errc code, std::string_view note) {
  auto const t = port_.now();
  run(life_.on_attempt_failed(epoch, placed({.code = code, .effect = effect::none}, note), t), t);
  settle(t);
}

void connection_core::on_connected(std::uint64_t epoch) {
  auto const t = port_.now();
  run(life_.on_connected(epoch, t), t);
  settle(t);
}

void connection_core::on_secured(std::uint64_t epoch) {
  auto const t = port_.now();
  run(life_.on_secured(epoch, t), t);
  settle(t);
}

void connection_core::on_credentials(std::uint64_t epoch, std::optional<credentials> const& who) {
  if (epoch != life_.epoch() || life_.state() != link_state::handshaking) return;
  if (!out_.empty()) return;  // said already
  auto const t = port_.now();
  if (who) {
    auto login = options_.login;
    login.user = who->user;
    login.password = who->password;
    greet(login);
  } else {
    run(life_.on_refused(epoch, placed({.code = errc::no_credentials, .effect = effect::none}, {}), t), t);
  }
  settle(t);
}

connection_core::~connection_core() { abandon(); }

void connection_core::abandon() noexcept {
  // Each list is taken before the first of its handlers is freed: what a handler owns may come back here.
  auto const fresh = inbox_.take();
  auto const done = std::move(done_);
  cancellable_.clear();
  std::vector<ended_call> left;
  queue_.on_lost(left);
  queue_.end_waiting(phase::queue, left);
  for (auto const& e : left) call_of(e.tag)->discard();
}

}  // namespace redoubt::detail
