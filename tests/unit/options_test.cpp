// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/options.hpp>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using redoubt::client_options;
using redoubt::duration;
using redoubt::errc;

TEST(options, defaults_are_those_of_the_documentation) {
  client_options const o;
  EXPECT_TRUE(o.validate());
  auto const r = o.resolved();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->address.host, "127.0.0.1");
  EXPECT_EQ(r->address.port, 6379);
  EXPECT_EQ(r->timeouts.connect, 100ms);
  EXPECT_EQ(r->timeouts.attempt, 100ms);
  EXPECT_EQ(r->timeouts.call, 150ms);
  EXPECT_EQ(r->bounds.in_flight, 1024u);
  EXPECT_EQ(r->bounds.queued_bytes, 16u << 20);
  EXPECT_EQ(r->reconnect.backoff.cap, 250ms);
  EXPECT_EQ(r->reconnect.stall_limit, 1s);
  EXPECT_EQ(r->connections, 1u);
  EXPECT_EQ(r->login.database, 0u);
  EXPECT_EQ(r->endpoint_text(), "127.0.0.1:6379");
}

struct nobody final : redoubt::credentials_provider {
  void get(reply) override {}
};

struct bad {
  std::string_view field;  ///< What the message must name.
  std::function<void(client_options&)> set;
  std::string value{};  ///< What it must show of the value; nothing of what may be a secret.
};

std::vector<bad> bad_options() {
  std::vector<bad> out;
  auto const time = [&out](std::string_view field, auto where, std::vector<duration> values) {
    for (auto const v : values) {
      auto const us = std::chrono::duration_cast<std::chrono::microseconds>(v).count();
      out.push_back(
          {field, [where, v](client_options& o) { where(o) = v; }, " = " + std::to_string(us) + " us"});
    }
  };
  std::vector<duration> const not_times{
      0ns, -1ns, -1ms, -1h, 1ns, 999ns, 1h + 1ns, 1000h, duration::min(), duration::max()};
  time(
      "timeouts.connect", [](client_options& o) -> duration& { return o.timeouts.connect; }, not_times);
  time(
      "timeouts.attempt", [](client_options& o) -> duration& { return o.timeouts.attempt; }, not_times);
  time(
      "timeouts.call", [](client_options& o) -> duration& { return o.timeouts.call; }, not_times);
  time("reconnect.backoff.base", [](client_options& o) -> duration& { return o.reconnect.backoff.base; },
       {0ns, -1ms, 1ns, 2h, duration::max(), duration::min()});
  time("reconnect.backoff.cap", [](client_options& o) -> duration& { return o.reconnect.backoff.cap; },
       {0ns, -1ms, 9ms, 2h, duration::max(), duration::min()});
  time("reconnect.refused_pause", [](client_options& o) -> duration& { return o.reconnect.refused_pause; },
       {0ns, -1ms, 999us, 2h, duration::max()});
  time("reconnect.ping_interval", [](client_options& o) -> duration& { return o.reconnect.ping_interval; },
       {0ns, -1ms, 999us, 2h, duration::max()});
  time("reconnect.stall_limit", [](client_options& o) -> duration& { return o.reconnect.stall_limit; },
       {0ns, -1ms, 99ms, 2h, duration::max()});
  auto const number = [&out](std::string_view field, auto where, std::vector<std::size_t> values) {
    using type = std::remove_reference_t<decltype(where(std::declval<client_options&>()))>;
    for (auto const v : values) {
      out.push_back({field, [where, v](client_options& o) { where(o) = static_cast<type>(v); },
                     " = " + std::to_string(static_cast<type>(v)) + " is"});
    }
  };
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  number("bounds.in_flight", [](client_options& o) -> std::size_t& { return o.bounds.in_flight; },
         {0, 1'000'001, most});
  number("bounds.queued_bytes", [](client_options& o) -> std::size_t& { return o.bounds.queued_bytes; },
         {0, 1023, (std::size_t{4} << 30) + 1, most});
  number("bounds.reply_bytes", [](client_options& o) -> std::size_t& { return o.bounds.reply_bytes; },
         {0, 63, (512u << 20) + 1, most});
  number("bounds.array_elements", [](client_options& o) -> std::size_t& { return o.bounds.array_elements; },
         {0, 0x80000000, most});
  number("bounds.depth", [](client_options& o) -> std::size_t& { return o.bounds.depth; }, {0, 8, most});
  number("bounds.late_replies", [](client_options& o) -> std::size_t& { return o.bounds.late_replies; },
         {0, 1'000'001, most});
  number("connections", [](client_options& o) -> std::uint32_t& { return o.connections; },
         {0, 65, 0xffffffff});
  number("login.database", [](client_options& o) -> std::uint32_t& { return o.login.database; },
         {0x80000000, 0xffffffff});
  out.push_back({"login.user", [](client_options& o) {
                   o.login.user = "app";
                   o.login.password.clear();
                 }});
  for (auto const& [name, shown] : {std::pair("a b", "0x20 at position 1"),
                                    {"a\nb", "0x0a at position 1"},
                                    {"a\r", "0x0d at position 1"},
                                    {"\x7f", "0x7f at position 0"},
                                    {"\xc3\xa4", "0xc3 at position 0"},
                                    {"S3cr3t pw", "0x20 at position 6"}}) {
    out.push_back({"login.client_name", [n = name](client_options& o) { o.login.client_name = n; }, shown});
  }
  out.push_back({"address.unix_path", [](client_options& o) { o.address.unix_path = std::string(108, 'x'); },
                 "108 bytes"});
  out.push_back({"address.unix_path",
                 [](client_options& o) { o.address.unix_path = std::string("/a\0b", 4); },
                 "0x00 at position 2"});
  out.push_back({"address.host", [](client_options& o) { o.address.host = std::string("h\0x", 3); },
                 "0x00 at position 1"});
  for (auto const* text : {"h\nlost: ok", "h\r", "h\x1b[2J", "h\x7f"}) {
    out.push_back({"address.host", [text](client_options& o) { o.address.host = text; }});
    out.push_back({"address.unix_path", [text](client_options& o) { o.address.unix_path = text; }});
  }
  out.push_back({"address.unix_path", [](client_options& o) { o.url = "unix:///a%0Ab"; }});
  out.push_back({"login.password", [](client_options& o) { o.credentials = std::make_shared<nobody>(); }});
  auto const tls = [&out](std::string_view field, auto set) {
    out.push_back({field, [set](client_options& o) { set(o.tls); }});
  };
  using redoubt::tls_options;
  // Without tls.enabled.
  tls("tls.server_name", [](tls_options& t) { t.server_name = "h"; });
  tls("tls.ca_file", [](tls_options& t) { t.ca_file = "ca.pem"; });
  tls("tls.certificate_file", [](tls_options& t) { t.certificate_file = "own.pem"; });
  tls("tls.key_file", [](tls_options& t) { t.key_file = "own.key"; });
  tls("tls.key_password", [](tls_options& t) { t.key_password = "S3cr3t-key"; });
  tls("tls.minimum", [](tls_options& t) { t.minimum = redoubt::tls_version::v1_3; });
  tls("tls.insecure_skip_verification", [](tls_options& t) { t.insecure_skip_verification = true; });
  // With it.
  tls("tls.key_file", [](tls_options& t) { t = {.enabled = true, .key_file = "own.key"}; });
  tls("tls.key_password", [](tls_options& t) { t = {.enabled = true, .key_password = "S3cr3t-key"}; });
  tls("tls.server_name",
      [](tls_options& t) { t = {.enabled = true, .server_name = std::string("h\0x", 3)}; });
  out.push_back({"tls.enabled", [](client_options& o) {
                   o.tls.enabled = true;
                   o.address.unix_path = "/run/redis.sock";
                 }});
  out.push_back({"url", [](client_options& o) { o.url = "redis://u:S3cr3t@h:0"; }});
  out.push_back({"url", [](client_options& o) { o.url = "nonsense S3cr3t"; }});
  return out;
}

TEST(options, C71_the_bad_field_is_named_and_no_secret_is_shown) {
  auto const all = bad_options();
  EXPECT_GT(all.size(), 40u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    client_options o;
    o.login.user = "S3cr3t-user";
    o.login.password = "S3cr3t-pw";
    all[i].set(o);
    auto const v = o.validate();
    ASSERT_FALSE(v) << i << ": " << all[i].field;
    EXPECT_EQ(v.error().code, errc::bad_option);
    EXPECT_EQ(v.error().group(), redoubt::failure_class::misconfigured);
    EXPECT_NE(v.error().detail->note.find(all[i].field), std::string::npos)
        << i << ": " << all[i].field << " gave: " << v.error().detail->note;
    EXPECT_NE(v.error().detail->note.find(all[i].value), std::string::npos)
        << i << ": " << all[i].value << " is not in: " << v.error().detail->note;
    EXPECT_EQ(v.error().message().find("S3cr3t"), std::string::npos) << v.error().message();
    EXPECT_FALSE(o.resolved()) << i;
  }
}

TEST(options, the_edges_of_each_range_are_accepted) {
  client_options low;
  low.timeouts = {1us, 1us, 1us};
  low.bounds = {1, 1024, 64, 1, 1, 1};
  low.reconnect = {{1us, 1us}, 1ms, 1us};
  EXPECT_TRUE(low.validate()) << low.validate().error();
  client_options high;
  high.timeouts = {1h, 1h, 1h};
  high.bounds = {1'000'000, std::size_t{4} << 30, 512u << 20, 0x7fffffff, 7, 1'000'000};
  high.reconnect = {{1h, 1h}, 1h, 1h};
  high.connections = 64;
  high.login.database = 0x7fffffff;
  high.address.unix_path = std::string(107, 'x');
  EXPECT_TRUE(high.validate()) << high.validate().error();
}

TEST(options, the_url_fills_what_is_not_set) {
  client_options o;
  o.url = "redis://u:p%40w@h:6380/2";
  auto const r = o.resolved();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->address.host, "h");
  EXPECT_EQ(r->address.port, 6380);
  EXPECT_EQ(r->login.user, "u");
  EXPECT_EQ(r->login.password, "p@w");
  EXPECT_EQ(r->login.database, 2u);
  EXPECT_EQ(r->url, "") << "it may hold a password";
  EXPECT_EQ(r->endpoint_text(), "h:6380");
}

TEST(options, C71_a_field_that_is_set_wins_and_is_never_decoded) {
  client_options o;
  o.url = "redis://u:pw@h:6380/2";
  o.login.user = "me%40";
  o.login.password = "a%40b+c";
  o.login.database = 3;
  o.address.host = "other";
  o.address.port = 7000;
  auto const r = o.resolved();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->login.user, "me%40");
  EXPECT_EQ(r->login.password, "a%40b+c");
  EXPECT_EQ(r->login.database, 3u);
  EXPECT_EQ(r->address.host, "other");
  EXPECT_EQ(r->address.port, 7000);
}

TEST(options, a_password_of_one_place_is_not_mixed_with_the_user_of_another) {
  client_options o;
  o.url = "redis://u:pw@h";
  o.login.password = "own";
  EXPECT_EQ(o.resolved()->login.user, "") << "the field's password belongs to the default user";
  EXPECT_EQ(o.resolved()->login.password, "own");
}

TEST(options, a_rediss_url_asks_for_tls_and_a_field_can_too) {
  client_options o;
  o.url = "rediss://u:pw@h:6380/2";
  o.tls.ca_file = "ca.pem";
  auto const r = o.resolved();
  ASSERT_TRUE(r) << r.error();
  EXPECT_TRUE(r->tls.enabled);
  EXPECT_EQ(r->address.host, "h");
  EXPECT_EQ(r->login.password, "pw");
  o.url = "redis://h";
  o.tls.enabled = true;
  EXPECT_TRUE(o.resolved()->tls.enabled);
  o.tls = {};
  EXPECT_FALSE(o.resolved()->tls.enabled);
}

TEST(options, a_unix_socket_needs_no_host) {
  client_options o;
  o.url = "unix:///run/redis.sock?db=1";
  auto const r = o.resolved();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->address.unix_path, "/run/redis.sock");
  EXPECT_EQ(r->login.database, 1u);
  EXPECT_EQ(r->endpoint_text(), "/run/redis.sock");
  client_options other;
  other.url = "unix:///run/redis.sock";
  other.address.host = "h";
  EXPECT_EQ(other.resolved()->endpoint_text(), "h:6379") << "an address that is set wins over the URL";
}

TEST(options, the_endpoint_shows_no_credentials) {
  client_options o;
  o.url = "redis://S3cr3t:S3cr3t@[::1]:7000";
  auto const r = o.resolved();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->endpoint_text(), "[::1]:7000");
}

TEST(options, resolving_twice_changes_nothing) {
  client_options o;
  o.url = "redis://u:p@h:6380/2";
  auto const once = o.resolved();
  auto const twice = once->resolved();
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->address.host, once->address.host);
  EXPECT_EQ(twice->address.port, once->address.port);
  EXPECT_EQ(twice->login.password, once->login.password);
  EXPECT_EQ(twice->login.database, once->login.database);
}

}  // namespace
