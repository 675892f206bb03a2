// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/handshake.hpp>

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/resp/command.hpp>

namespace {

using redoubt::command;
using redoubt::errc;
using redoubt::failure_class;
using redoubt::handshake;
using redoubt::login_options;
using redoubt::phase;
using redoubt::reply;
using redoubt::server_errc;
using redoubt::status_line;
using kind = handshake::outcome::kind;

reply ok() { return reply(status_line{"OK"}); }
reply pong() { return reply(status_line{"PONG"}); }
reply error(std::string_view line) { return reply(redoubt::parse_server_error(line)); }

struct step {
  std::string name;
  command sent;
};

struct conversation {
  login_options login;
  std::vector<step> steps;
};

/// Every combination of what a login may ask for.
std::vector<conversation> conversations() {
  std::vector<conversation> out;
  for (int with = 0; with < 12; ++with) {
    conversation c;
    c.login.client_name.clear();
    switch (with % 3) {
      case 1:
        c.login.password = "S3cr3t-pw";
        c.steps.push_back({"AUTH", command("AUTH", "S3cr3t-pw")});
        break;
      case 2:
        c.login.user = "app";
        c.login.password = "S3cr3t-pw";
        c.steps.push_back({"AUTH", command("AUTH", "app", "S3cr3t-pw")});
        break;
      default: break;
    }
    if (with / 3 % 2 == 1) {
      c.login.database = 7;
      c.steps.push_back({"SELECT", command("SELECT", 7)});
    }
    if (with / 6 == 1) {
      c.login.client_name = "shop";
      c.steps.push_back({"CLIENT", command("CLIENT", "SETNAME", "shop")});
    }
    c.steps.push_back({"PING", command("PING")});
    out.push_back(std::move(c));
  }
  return out;
}

reply good(step const& s) { return s.name == "PING" ? pong() : ok(); }

TEST(handshake, writes_the_steps_in_order_and_never_hello) {
  for (auto const& c : conversations()) {
    std::string wanted;
    for (auto const& s : c.steps) wanted += s.sent.wire();
    EXPECT_EQ(handshake(c.login).bytes(), wanted);
    EXPECT_EQ(handshake(c.login).bytes().find("HELLO"), std::string::npos);
  }
}

TEST(handshake, succeeds_when_each_step_does) {
  for (auto const& c : conversations()) {
    handshake h(c.login);
    for (auto const& s : c.steps) {
      auto const out = h.on_reply(good(s));
      EXPECT_EQ(out.what, s.name == "PING" ? kind::done : kind::pending);
    }
    EXPECT_EQ(h.on_reply(pong()).what, kind::refused) << "a surplus reply";
  }
}

// Each error at each step of each conversation.
TEST(handshake, fails_at_each_step_for_the_reason_the_server_gave) {
  struct fault {
    std::string_view line;
    server_errc code;
    bool fatal_for_name;  // CLIENT SETNAME is a courtesy
    bool fatal_for_ping;  // some errors say that the server is alive
  };
  fault const faults[] = {
      {"ERR max number of clients reached", server_errc::max_clients, true, true},
      {"ERR max number of clients + cluster connections reached", server_errc::max_clients, true, true},
      {"NOAUTH Authentication required.", server_errc::noauth, true, true},
      {"WRONGPASS invalid username-password pair or user is disabled.", server_errc::wrongpass, false, true},
      {"ERR unknown command", server_errc::err, false, true},
      {"ERR DB index is out of range", server_errc::err, false, true},
      {"NOPERM this user has no permissions to run the 'ping' command", server_errc::noperm, false, false},
      {"LOADING Redis is loading the dataset in memory", server_errc::loading, false, false},
      {"MASTERDOWN Link with MASTER is down", server_errc::masterdown, false, false},
      {"BUSY Redis is busy running a script.", server_errc::busy, false, false},
      {"MISCONF Redis is configured to save RDB snapshots", server_errc::misconf, false, false},
  };
  for (auto const& c : conversations()) {
    for (std::size_t at = 0; at < c.steps.size(); ++at) {
      for (auto const& f : faults) {
        handshake h(c.login);
        for (std::size_t i = 0; i < at; ++i) ASSERT_EQ(h.on_reply(good(c.steps[i])).what, kind::pending);
        auto const& name = c.steps[at].name;
        auto const out = h.on_reply(error(f.line));
        bool const fatal = name == "CLIENT" ? f.fatal_for_name : name == "PING" ? f.fatal_for_ping : true;
        if (!fatal) {
          EXPECT_EQ(out.what, name == "PING" ? kind::done : kind::pending) << name << ": " << f.line;
          continue;
        }
        ASSERT_EQ(out.what, kind::refused) << name << ": " << f.line;
        EXPECT_EQ(out.why.code, errc::server_error);
        EXPECT_EQ(out.why.server, f.code);
        EXPECT_EQ(out.why.effect, redoubt::effect::none) << "no call was sent";
        EXPECT_EQ(out.why.phase, phase::handshake);
        EXPECT_EQ(out.why.command.view(), name);
        EXPECT_EQ(out.why.message().find("S3cr3t"), std::string::npos);
      }
    }
  }
}

TEST(handshake, C40_a_wrong_password_is_a_mistake_and_stays_one) {
  login_options login;
  login.password = "wrong";
  handshake h(login);
  auto const out = h.on_reply(error("WRONGPASS invalid username-password pair or user is disabled."));
  ASSERT_EQ(out.what, kind::refused);
  EXPECT_EQ(out.why.group(), failure_class::misconfigured);
  EXPECT_FALSE(out.why.fail_mode_applies());
}

TEST(handshake, C42_a_name_that_the_server_does_not_take_is_ignored) {
  for (auto const* line :
       {"ERR unknown subcommand 'SETNAME'. Try CLIENT HELP.", "ERR unknown command 'CLIENT'",
        "ERR Client names cannot contain spaces, newlines or special characters."}) {
    handshake h(login_options{});
    EXPECT_EQ(h.on_reply(error(line)).what, kind::pending);
    EXPECT_EQ(h.on_reply(pong()).what, kind::done);
  }
}

TEST(handshake, C43_max_clients_arrives_unasked_on_whatever_step_is_first) {
  for (auto const& c : conversations()) {
    handshake h(c.login);
    auto const out = h.on_reply(error("ERR max number of clients reached"));
    ASSERT_EQ(out.what, kind::refused);
    EXPECT_EQ(out.why.server, server_errc::max_clients);
    EXPECT_EQ(out.why.group(), failure_class::unavailable);
  }
}

TEST(handshake, C52_a_loading_server_keeps_its_connection) {
  handshake h(login_options{});
  (void)h.on_reply(ok());
  EXPECT_EQ(h.on_reply(error("LOADING Redis is loading the dataset in memory")).what, kind::done)
      << "each call gets the same answer and recovers on its own";
}

TEST(handshake, C39_a_server_that_asks_for_a_password_is_not_taken_for_an_old_one) {
  login_options login;
  login.client_name.clear();
  handshake h(login);
  auto const out = h.on_reply(error("NOAUTH Authentication required."));
  ASSERT_EQ(out.what, kind::refused);
  EXPECT_EQ(out.why.server, server_errc::noauth);
  EXPECT_EQ(out.why.group(), failure_class::misconfigured);
}

TEST(handshake, C66_replies_of_another_protocol_are_refused_at_each_step) {
  reply const strange[] = {reply(),
                           reply(std::int64_t{1}),
                           reply(std::string("pong")),
                           reply(status_line{"HELLO"}),
                           reply(reply::array{pong()}),
                           reply(status_line{""})};
  for (auto const& c : conversations()) {
    for (std::size_t at = 0; at < c.steps.size(); ++at) {
      if (c.steps[at].name == "CLIENT") continue;
      for (auto const& r : strange) {
        handshake h(c.login);
        for (std::size_t i = 0; i < at; ++i) (void)h.on_reply(good(c.steps[i]));
        auto const out = h.on_reply(r);
        ASSERT_EQ(out.what, kind::refused) << c.steps[at].name << " " << r;
        EXPECT_EQ(out.why.code, errc::protocol_error);
        EXPECT_EQ(out.why.effect, redoubt::effect::none);
      }
    }
  }
}

TEST(handshake, a_user_without_a_password_sends_nothing) {
  login_options login;
  login.user = "app";
  login.client_name.clear();
  EXPECT_EQ(handshake(login).bytes(), command("PING").wire());
}

TEST(handshake, C72_login_data_of_any_bytes_stays_data) {
  login_options login;
  login.user = std::string("u\r\n\0x", 5);
  login.password = "p\r\n*1\r\n$8\r\nFLUSHALL\r\n";
  login.client_name.clear();
  EXPECT_EQ(handshake(login).bytes(), std::string(command("AUTH", login.user, login.password).wire()) +
                                          std::string(command("PING").wire()));
}

}  // namespace
