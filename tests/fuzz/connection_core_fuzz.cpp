// SPDX-License-Identifier: BSL-1.0
//
// A connection core between random callers, a random network and a server that answers each GET with its own
// key: no reply goes to another call, effect none was never sent, nobody waits beyond his limit, and in the
// end nothing is left.
//
// Input: two bytes for each step. A last byte without a partner asks for TLS (1), for credentials (2) and for
// a socket that takes a part of what is written at once (4).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scripted_link.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::command;
using redoubt::link_state;
using test::scripted_link;
using action = scripted_link::action;

void require(bool ok, char const* what) {
  if (ok) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

class play {
 public:
  explicit play(unsigned setup) : link_(options(setup)), has_room_((setup & 4) != 0) {}

  void step(std::uint8_t what, std::uint8_t how) {
    if (has_room_) link_.room = how;
    switch (what % 16) {
      case 0:
      case 1: call({}); break;
      case 2: call(std::chrono::milliseconds(1 + how * 2)); break;
      case 3: attempt(how); break;
      case 4:
      case 5: attempt(how | 1); break;
      case 6:
        if (link_.writing()) link_.written(1 + how % link_.unwritten());
        break;
      case 7:
        if (link_.writing()) link_.written();
        break;
      case 8:
      case 9:
      case 10: serve(how); break;
      case 11: link_.cancel(1 + how % (calls_.size() + 1)); break;
      case 12: link_.advance(std::chrono::milliseconds(how)); break;
      case 13: link_.advance(std::chrono::milliseconds(how % 4)); break;
      case 14: disturb(how); break;
      default: link_.busy(std::chrono::milliseconds(how % 8)); break;
    }
    watch();
  }

  void finish() {
    link_.close(redoubt::deadline(link_.time + 50ms));
    link_.advance(60ms);
    watch();
    require(link_.core->closed(), "close() ends at its deadline");
    require(!link_.armed, "no timer is left");
    for (auto const& c : calls_) require(c.t->ends == 1, "each call ends exactly once");
    require(link_.gate->calls() == 0 && link_.gate->bytes() == 0, "the bounds are free again");
  }

 private:
  struct known {
    test::ticket t;
    redoubt::time_point by;
    bool own_budget = false;
    bool seen = false;
  };

  struct silent_provider final : redoubt::credentials_provider {
    void get(reply) override {}  // the link is asked instead
  };

  static redoubt::client_options options(unsigned setup) {
    redoubt::client_options o;
    o.tls.enabled = (setup & 1) != 0;
    if ((setup & 2) != 0) o.credentials = std::make_shared<silent_provider>();
    o.bounds.in_flight = 32;
    o.bounds.late_replies = 16;
    return o;
  }

  static std::string key_of(std::size_t number) { return "key-" + std::to_string(number) + "-"; }

  void call(std::optional<redoubt::duration> budget) {
    if (calls_.size() == 200) return;
    auto const number = calls_.size();
    auto const t = link_.call(command("GET", key_of(number)), {.budget = budget, .cancel_key = number + 1});
    if (!t) return;
    calls_.push_back({t, link_.time + budget.value_or(150ms), budget.has_value()});
  }

  void attempt(std::uint8_t how) {
    switch (link_.core->snapshot().state) {
      case link_state::resolving:
        how % 16 ? link_.resolved() : link_.failed(redoubt::errc::resolve_failed);
        break;
      case link_state::connecting: how % 8 ? link_.connected() : link_.failed(); break;
      case link_state::securing:
        switch (how % 8) {
          case 0: link_.failed(redoubt::errc::tls_failed, "not TLS"); break;
          case 4: link_.failed(redoubt::errc::tls_untrusted, "expired"); break;
          default: link_.secured(); break;
        }
        break;
      case link_state::handshaking:
        if (!link_.connected_now()) {
          if (how % 16 == 4) {
            link_.credentials(std::nullopt);
          } else {
            link_.credentials(redoubt::credentials{how % 16 == 6 ? "user" : "", "word"});
          }
          break;
        }
        if (how % 16 == 0) {
          link_.receive("-ERR max number of clients reached\r\n");
        } else if (how % 16 == 2) {
          link_.broken(how % 32 == 2 ? redoubt::errc::connection_lost : redoubt::errc::tls_untrusted);
        } else if (!link_.options.credentials) {
          link_.receive("+OK\r\n+PONG\r\n");
        } else if (how % 16 == 8) {
          link_.receive("-WRONGPASS invalid username-password pair or user is disabled.\r\n");
        } else {
          link_.receive("+OK\r\n+OK\r\n+PONG\r\n");
        }
        break;
      default: break;
    }
  }

  /// The server answers some of what it has, in pieces.
  void serve(std::uint8_t how) {
    if (link_.core->snapshot().state != link_state::ready || !link_.connected_now()) return;
    for (unsigned n = 1 + how % 3; n > 0 && !owed_.empty(); --n) {
      auto const key = owed_.front();
      owed_.pop_front();
      pending_ += how % 32 == 31 ? std::string("-OOM command not allowed\r\n") : answer(key);
    }
    if (pending_.empty()) return;
    auto const size = how % 5 == 0 ? 1 + how % pending_.size() : pending_.size();
    auto const piece = pending_.substr(0, size);
    pending_.erase(0, size);
    link_.receive(piece);
  }

  /// What the connection asks on its own when it is idle; kept as an empty key.
  static constexpr std::string_view idle_ping = "*1\r\n$4\r\nPING\r\n";

  static std::string answer(std::string const& key) {
    if (key.empty()) return "+PONG\r\n";
    return "$" + std::to_string(key.size()) + "\r\n" + key + "\r\n";
  }

  void disturb(std::uint8_t how) {
    if (link_.core->snapshot().state != link_state::ready || !link_.connected_now()) return;
    if (how % 6 != 0 && !pending_.empty()) {
      // Not in the middle of a string, where anything is data.
      link_.receive(std::exchange(pending_, {}));
      return;
    }
    switch (how % 6) {
      case 0: link_.broken(); break;
      case 1: link_.receive("HTTP/1.1 400\r\n"); break;
      case 2: link_.receive("$99999999999\r\n"); break;
      case 3:
        if (!owed_.empty() && pending_.empty()) {
          owed_.pop_front();
          link_.receive("-READONLY You can't write against a read only replica.\r\n");
        }
        break;
      default: link_.advance(std::chrono::milliseconds(200 + how * 5)); break;
    }
  }

  /// Follows what the core did, and judges what ended.
  void watch() {
    for (; log_seen_ < link_.log.size(); ++log_seen_) {
      if (link_.log[log_seen_].what != action::drop) continue;
      owed_.clear();
      pending_.clear();
      sent_seen_ = std::max(sent_seen_, link_.sent_at_drop);
    }
    while (sent_seen_ < link_.sent.size()) {
      if (std::string_view(link_.sent).substr(sent_seen_).starts_with(idle_ping)) {
        owed_.emplace_back();
        sent_seen_ += idle_ping.size();
        continue;
      }
      // *2 $3 GET $n key
      auto const at = link_.sent.find("key-", sent_seen_);
      auto const end = link_.sent.find("\r\n", at);
      require(at != std::string::npos && end != std::string::npos, "whole commands are handed over");
      owed_.push_back(link_.sent.substr(at, end - at));
      sent_seen_ = end + 2;
    }
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      auto& c = calls_[i];
      if (c.seen || !c.t->ended()) continue;
      c.seen = true;
      auto const key = key_of(i);
      auto const first = link_.sent.find(key + "\r\n");
      bool const was_sent = first != std::string::npos;
      if (was_sent)
        require(link_.sent.find(key + "\r\n", first + 1) == std::string::npos, "sent at most once");
      if (!c.t->error) {
        require(c.t->value.as_string() == key, "a reply belongs to its call");
      } else if (c.t->why().code != redoubt::errc::server_error ||
                 c.t->why().phase == redoubt::phase::handshake) {
        require(was_sent == (c.t->why().effect == redoubt::effect::unknown), "effect none was never sent");
        if (c.t->why().code == redoubt::errc::deadline_exceeded) {
          require(c.t->at >= (c.own_budget ? c.by : std::min(c.by, c.t->at - c.t->why().elapsed + 100ms)),
                  "never early");
        }
      }
    }
    for (auto const& c : calls_) {
      // Whoever is overdue has a timer that is due.
      if (!c.t->ended() && c.by + 1ms < link_.time)
        require(link_.armed && *link_.armed <= link_.time, "late");
    }
  }

  scripted_link link_;
  bool has_room_;
  std::vector<known> calls_;
  std::deque<std::string> owed_;
  std::string pending_;
  std::size_t log_seen_ = 0;
  std::size_t sent_seen_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  GTEST_FLAG_SET(break_on_failure, true);  // the link's own checks end the run, too
  play p(size % 2 == 1 ? data[size - 1] : 0);
  for (std::size_t i = 0; i + 1 < size && i < 1000; i += 2) p.step(data[i], data[i + 1]);
  p.finish();
  return 0;
}
