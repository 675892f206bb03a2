// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/handshake.hpp>

#include <redoubt/resp/command.hpp>
#include <redoubt/resp/reader.hpp>

namespace redoubt {
namespace {

handshake::outcome refused(server_error const& error, std::string_view command) {
  handshake::outcome out{handshake::outcome::kind::refused, {}};
  out.why.code = errc::server_error;
  out.why.server = error.code;
  out.why.effect = effect::none;
  out.why.phase = phase::handshake;
  out.why.command = command_name(command);
  auto text = std::make_shared<failure_detail>();
  text->server_text = escaped(error.text, 256);
  out.why.detail = std::move(text);
  return out;
}

handshake::outcome not_redis(std::string_view command) {
  handshake::outcome out{handshake::outcome::kind::refused, {}};
  out.why.code = errc::protocol_error;
  out.why.effect = effect::none;
  out.why.phase = phase::handshake;
  out.why.command = command_name(command);
  return out;
}

/// Refusals that say nothing about the connection itself: the server is there and we are who we say. The
/// calls that follow get the same answer, each with its own class, and recover on their own once the state
/// ends.
bool says_alive(server_errc code) noexcept {
  switch (code) {
    case server_errc::loading:
    case server_errc::masterdown:
    case server_errc::busy:
    case server_errc::misconf:
    case server_errc::noperm: return true;
    default: return false;
  }
}

}  // namespace

handshake::handshake(login_options const& login)
    : has_auth_(!login.password.empty()),
      has_select_(login.database != 0),
      has_name_(!login.client_name.empty()),
      step_(has_auth_ ? step::auth : after(step::auth)) {
  if (has_auth_) {
    bytes_ += login.user.empty() ? command("AUTH", login.password).wire()
                                 : command("AUTH", login.user, login.password).wire();
  }
  if (has_select_) bytes_ += command("SELECT", login.database).wire();
  if (has_name_) bytes_ += command("CLIENT", "SETNAME", login.client_name).wire();
  bytes_ += command("PING").wire();
}

handshake::step handshake::after(step s) const noexcept {
  switch (s) {
    case step::auth:
      if (has_select_) return step::select;
      [[fallthrough]];
    case step::select:
      if (has_name_) return step::set_name;
      [[fallthrough]];
    case step::set_name: return step::ping;
    case step::ping:
    case step::finished: return step::finished;
  }
  return step::finished;
}

handshake::outcome handshake::on_reply(reply const& r) {
  auto const current = std::exchange(step_, after(step_));
  switch (current) {
    case step::auth:
      // "-ERR max number of clients reached" comes unasked and lands here, on whatever step is first.
      if (r.is_error()) return refused(r.as_error(), "AUTH");
      if (r.as_string() != "OK") return not_redis("AUTH");
      return {};
    case step::select:
      if (r.is_error()) return refused(r.as_error(), "SELECT");
      if (r.as_string() != "OK") return not_redis("SELECT");
      return {};
    case step::set_name:
      // The name is a courtesy: a server that does not know it is used all the same. What concerns the
      // connection itself (too many clients, no AUTH) must still end it.
      if (r.is_error() &&
          (r.as_error().code == server_errc::max_clients || r.as_error().code == server_errc::noauth)) {
        return refused(r.as_error(), "CLIENT");
      }
      return {};
    case step::ping:
      if (r.is_error()) {
        if (says_alive(r.as_error().code)) return {outcome::kind::done, {}};
        return refused(r.as_error(), "PING");
      }
      if (r.as_string() != "PONG") return not_redis("PING");
      return {outcome::kind::done, {}};
    case step::finished: break;
  }
  return not_redis("PING");  // a surplus reply
}

}  // namespace redoubt
