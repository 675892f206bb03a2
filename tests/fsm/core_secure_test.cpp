// SPDX-License-Identifier: BSL-1.0
//
// What stands between a connection and its first call: the TLS handshake, and credentials asked for anew.
#include <gtest/gtest.h>

#include "scripted_link.hpp"

namespace {

using namespace std::chrono_literals;
using namespace redoubt;
using test::scripted_link;
using action = scripted_link::action;

struct nobody final : credentials_provider {
  void get(reply) override { ADD_FAILURE() << "the port asks, not the core"; }
};

client_options with_provider() {
  client_options out;
  out.credentials = std::make_shared<nobody>();
  return out;
}

client_options with_tls() {
  client_options out;
  out.tls.enabled = true;
  return out;
}

TEST(core_secure, C75_nothing_is_written_before_the_tls_handshake_has_ended) {
  scripted_link l(with_tls());
  auto const t = l.get("k");
  l.resolved();
  l.connected();
  EXPECT_EQ(l.count(action::secure), 1u);
  EXPECT_EQ(l.count(action::write), 0u);
  EXPECT_EQ(l.count(action::read), 0u);
  l.secured();
  EXPECT_EQ(l.count(action::write), 1u);
  l.written();
  l.receive("+OK\r\n+PONG\r\n");
  l.answer("$1\r\nv\r\n");
  EXPECT_EQ(t->value.as_string(), "v");
}

TEST(core_secure, C19_a_call_ends_in_the_tls_handshake_by_its_own_limit) {
  scripted_link l(with_tls());
  auto const t = l.call(command("GET", "k"), {.budget = 150ms});
  l.resolved();
  l.connected();
  l.advance(149ms);
  EXPECT_FALSE(t->ended());
  l.advance(2ms);
  EXPECT_EQ(t->why().code, errc::deadline_exceeded);
  EXPECT_EQ(t->why().phase, phase::tls);
  EXPECT_EQ(t->why().effect, effect::none);
  EXPECT_EQ(l.count(action::drop), 0u) << "parked: a frozen server thaws";
  l.advance(1s);
  EXPECT_EQ(l.count(action::drop), 1u) << "the stall limit";
}

TEST(core_secure, C74_a_certificate_that_is_not_trusted_is_said_to_every_call) {
  scripted_link l(with_tls());
  auto const t = l.get("k");
  l.resolved();
  l.connected();
  l.failed(errc::tls_untrusted, "it has expired");
  EXPECT_EQ(t->why().code, errc::tls_untrusted);
  EXPECT_EQ(t->why().phase, phase::tls);
  EXPECT_NE(t->why().message().find("it has expired"), std::string::npos);
  auto const next = l.get("k");
  EXPECT_TRUE(next->why().rejected);
  EXPECT_EQ(next->why().group(), failure_class::misconfigured);
  EXPECT_GE(next->why().retry_after, 500ms);
  EXPECT_NE(next->why().message().find("it has expired"), std::string::npos);
  ASSERT_FALSE(l.events.empty());
  auto const lost = std::find_if(l.events.begin(), l.events.end(),
                                 [](auto const& e) { return e.kind == event_kind::lost; });
  ASSERT_NE(lost, l.events.end());
  EXPECT_EQ(lost->cause->code, errc::tls_untrusted);
}

TEST(core_secure, a_server_that_does_not_accept_our_certificate_says_so_late) {
  scripted_link l(with_tls());
  auto const t = l.get("k");
  l.resolved();
  l.connected();
  l.secured();
  l.broken(errc::tls_untrusted, "it asks for a certificate");
  EXPECT_EQ(t->why().code, errc::tls_untrusted);
  EXPECT_EQ(t->why().phase, phase::tls);
  EXPECT_EQ(t->why().effect, effect::none);
  EXPECT_GE(l.get("k")->why().retry_after, 500ms);
}

TEST(core_secure, the_same_alert_on_a_ready_connection_is_a_loss_like_any_other) {
  scripted_link l(with_tls());
  auto const t = l.get("k");
  l.resolved();
  l.connected();
  l.secured();
  l.written();
  l.receive("+OK\r\n+PONG\r\n");
  l.written();
  l.broken(errc::tls_untrusted, "revoked");
  EXPECT_EQ(t->why().code, errc::connection_lost);
  EXPECT_EQ(t->why().effect, effect::unknown);
}

TEST(core_secure, C36_credentials_are_asked_for_once_per_handshake_and_then_said) {
  scripted_link l(with_provider());
  for (int round = 1; round <= 3; ++round) {
    auto const t = l.get("k");
    l.resolved();
    l.connected();
    EXPECT_EQ(l.count(action::ask), static_cast<std::size_t>(round));
    auto const written = l.count(action::write);
    l.advance(1ms);
    EXPECT_EQ(l.count(action::write), written) << "nothing before the answer";
    auto const password = "pw" + std::to_string(round);
    l.credentials(credentials{"ann", password});
    ASSERT_NE(l.last(action::write), nullptr);
    EXPECT_EQ(l.last(action::write)->bytes.find(command("AUTH", "ann", password).wire()), 0u);
    l.written();
    l.receive("+OK\r\n+OK\r\n+PONG\r\n");
    l.answer("$1\r\nv\r\n");
    EXPECT_EQ(t->value.as_string(), "v");
    l.broken();
  }
}

TEST(core_secure, C36_a_slow_provider_costs_a_call_its_limit_and_no_more) {
  scripted_link l(with_provider());
  auto const t = l.call(command("GET", "k"), {.budget = 100ms});
  l.resolved();
  l.connected();
  l.advance(101ms);
  EXPECT_EQ(t->why().code, errc::deadline_exceeded);
  EXPECT_EQ(t->why().phase, phase::handshake);
  EXPECT_EQ(t->why().effect, effect::none);
  l.advance(199ms);
  auto const next = l.get("k");
  l.credentials(credentials{{}, "pw"});
  l.written();
  l.receive("+OK\r\n+OK\r\n+PONG\r\n");
  l.answer("$1\r\nv\r\n");
  EXPECT_EQ(next->value.as_string(), "v") << "the attempt went on";
  EXPECT_EQ(l.core->snapshot().attempts, 1u);
}

TEST(core_secure, C36_no_credentials_pause_like_a_refusal) {
  scripted_link l(with_provider());
  auto const t = l.get("k");
  l.resolved();
  l.connected();
  l.credentials(std::nullopt);
  EXPECT_EQ(t->why().code, errc::no_credentials);
  EXPECT_EQ(t->why().phase, phase::handshake);
  EXPECT_EQ(t->why().effect, effect::none);
  EXPECT_TRUE(t->why().fail_mode_applies());
  EXPECT_GE(l.get("k")->why().retry_after, 500ms);
  EXPECT_EQ(l.count(action::write), 0u);
}

TEST(core_secure, C36_a_provider_that_never_answers_ends_at_the_stall_limit) {
  scripted_link l(with_provider());
  (void)l.get("k");
  l.resolved();
  l.connected();
  auto const old = l.epoch();
  l.advance(1s);
  EXPECT_EQ(l.count(action::drop), 1u);
  auto const t = l.get("k");
  l.resolved();
  l.connected();
  l.core->on_credentials(old, credentials{{}, "late"});
  EXPECT_EQ(l.count(action::write), 0u) << "an answer to an older question";
  l.credentials(credentials{{}, "now"});
  ASSERT_EQ(l.count(action::write), 1u);
  l.credentials(credentials{{}, "twice"});
  EXPECT_EQ(l.count(action::write), 1u);
  EXPECT_FALSE(t->ended());
}

}  // namespace
