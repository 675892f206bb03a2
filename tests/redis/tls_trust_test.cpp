// SPDX-License-Identifier: BSL-1.0
//
// Who is believed to be our Redis, and who is not. Every refusal happens before a byte of ours but the TLS
// handshake itself.
#include "tls_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;

void expect_untrusted(failure const& why, std::string_view cause) {
  EXPECT_EQ(why.code, errc::tls_untrusted) << why;
  EXPECT_EQ(why.phase, phase::tls) << why;
  EXPECT_EQ(why.effect, effect::none) << why;
  EXPECT_EQ(why.group(), failure_class::misconfigured) << why;
  EXPECT_NE(why.message().find(cause), std::string::npos) << why;
}

TEST(tls_trust, the_right_certificate_is_accepted_by_name_and_by_address) {
  authority ca;
  tls_redis server(ca, ca.issue({.names = "DNS:localhost,DNS:redis.test,IP:127.0.0.1"}));
  running_context context;
  auto by_name = over_tls(server.tls_port(), ca);
  auto by_address = by_name;
  by_address.address.host = "127.0.0.1";
  auto by_url = by_name;
  by_url.address = {};
  by_url.tls.enabled = false;  // the URL says it
  by_url.url = "rediss://localhost:" + std::to_string(server.tls_port()) + "/2";
  auto as_another = by_address;
  as_another.tls.server_name = "redis.test.";  // with the root's dot
  for (auto const& options : {by_name, by_address, by_url, as_another}) {
    client redis(context.io(), options);
    auto const got = call(redis, command("PING"));
    EXPECT_TRUE(got) << got.error();
  }
}

TEST(tls_trust, C74_a_certificate_for_another_host_is_refused) {
  authority ca;
  tls_redis server(ca, ca.issue({.names = "DNS:elsewhere.test,IP:10.0.0.1"}));
  auto options = over_tls(server.tls_port(), ca);
  expect_untrusted(refused_by_tls(options), "is not for localhost");
  options.address.host = "127.0.0.1";
  expect_untrusted(refused_by_tls(options), "is not for 127.0.0.1");
  options.tls.server_name = "test";  // not a part of a name either
  expect_untrusted(refused_by_tls(options), "is not for test");
}

TEST(tls_trust, C74_a_certificate_that_is_not_valid_now_is_refused) {
  authority ca;
  tls_redis server(ca, ca.issue({.names = "DNS:localhost", .valid_until = -60s}));
  expect_untrusted(refused_by_tls(over_tls(server.tls_port(), ca)), "has expired");
  server.show(ca.issue({.names = "DNS:localhost", .valid_from = 3600s}));
  expect_untrusted(refused_by_tls(over_tls(server.tls_port(), ca)), "is not valid yet");
}

TEST(tls_trust, C74_a_certificate_from_nobody_we_know_is_refused) {
  authority ca;
  authority stranger("somebody else");
  authority impostor;  // calls itself like ours
  tls_redis server(stranger, stranger.issue({.names = "DNS:localhost"}));
  expect_untrusted(refused_by_tls(over_tls(server.tls_port(), ca)), "authority that is not trusted");
  server.show(impostor.issue({.names = "DNS:localhost"}));
  expect_untrusted(refused_by_tls(over_tls(server.tls_port(), ca)), "authority that is not trusted");
  // Nor does the system know it: the default is to ask the system, not to believe.
  auto by_default = over_tls(server.tls_port(), ca);
  by_default.tls.ca_file.clear();
  expect_untrusted(refused_by_tls(by_default), "authority that is not trusted");
}

TEST(tls_trust, C74_only_a_field_with_a_loud_name_turns_it_off) {
  authority ca;
  authority stranger;
  tls_redis server(stranger, stranger.issue({.names = "DNS:elsewhere.test", .valid_until = -60s}));
  auto options = over_tls(server.tls_port(), ca);
  options.tls.insecure_skip_verification = true;
  running_context context;
  client redis(context.io(), options);
  auto const got = call(redis, command("PING"));
  EXPECT_TRUE(got) << got.error();
}

TEST(tls_trust, C75_every_reconnect_verifies_and_says_no_password_to_a_stranger) {
  authority ca;
  authority stranger;
  auto const right = ca.issue({.names = "DNS:localhost"});
  tls_redis server(ca, right, {"--requirepass", "S3cr3t-pw"});
  raw_redis admin(server.server().port());
  admin.call({"AUTH", "S3cr3t-pw"});
  auto const show = [&](certificate_files const& identity) {
    ASSERT_EQ(
        admin.call({"CONFIG", "SET", "tls-cert-file", identity.certificate, "tls-key-file", identity.key}),
        "+OK\r\n");
  };
  auto const drop_all = [&] { admin.call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}); };
  auto const said = [&] { return number_in(admin.call({"INFO", "commandstats"}), "cmdstat_auth:calls="); };

  auto options = over_tls(server.tls_port(), ca);
  options.login.password = "S3cr3t-pw";
  running_context context;
  client redis(context.io(), options);
  ASSERT_TRUE(call(redis, command("SET", "k", "v")));
  auto const before = said();

  show(stranger.issue({.names = "DNS:localhost"}));
  drop_all();
  ASSERT_TRUE(eventually([&] { return redis.snapshot().lost == 1; }));
  ASSERT_TRUE(eventually(
      [&] {
        auto const got = call(redis, command("SET", "k", "w"));
        EXPECT_FALSE(got);
        if (got) return true;
        EXPECT_EQ(got.error().code, errc::tls_untrusted) << got.error();
        EXPECT_EQ(got.error().effect, effect::none);
        return redis.snapshot().failed >= 100;
      },
      60s));
  EXPECT_EQ(redis.snapshot().readied, 1U);
  EXPECT_EQ(said(), before) << "the password was said to a stranger";
  EXPECT_EQ(admin.call({"GET", "k"}), "$1\r\nv\r\n");

  show(right);
  EXPECT_TRUE(eventually([&] { return call(redis, command("SET", "k", "w")).has_value(); }));
  EXPECT_EQ(said(), before + 1);
}

TEST(tls_trust, a_server_that_asks_for_a_certificate_gets_ours) {
  authority ca;
  authority stranger("somebody else");
  authority impostor;  // calls itself like ours
  auto const ours = ca.issue({.names = "DNS:shop.test"});
  auto const locked = ca.issue({.names = "DNS:shop.test", .key_password = "S3cr3t-key"});
  auto const strange = {stranger.issue({.names = "DNS:shop.test"}),
                        impostor.issue({.names = "DNS:shop.test"})};
  for (std::string const versions : {"TLSv1.2", "TLSv1.3"}) {
    SCOPED_TRACE(versions);
    tls_redis server(ca, ca.issue({.names = "DNS:localhost"}),
                     {"--tls-auth-clients", "yes", "--tls-protocols", versions});
    auto options = over_tls(server.tls_port(), ca);

    auto const without = refused_by_tls(options);
    EXPECT_EQ(without.effect, effect::none);
    EXPECT_EQ(without.phase, phase::tls) << without;
    EXPECT_NE(without.message().find("asks for a certificate of ours"), std::string::npos) << without;
    // TLS 1.2 has no alert of its own for it.
    EXPECT_EQ(without.code, versions == "TLSv1.3" ? errc::tls_untrusted : errc::tls_failed) << without;

    for (auto const& files : strange) {
      options.tls.certificate_file = files.certificate;
      options.tls.key_file = files.key;
      expect_untrusted(refused_by_tls(options), "the server does not accept our certificate");
    }

    running_context context;
    for (auto const& [files, password] : {std::pair{ours, ""}, std::pair{locked, "S3cr3t-key"}}) {
      options.tls.certificate_file = files.certificate;
      options.tls.key_file = files.key;
      options.tls.key_password = password;
      client redis(context.io(), options);
      auto const got = call(redis, command("PING"));
      EXPECT_TRUE(got) << got.error();
    }
  }
}

TEST(tls_trust, an_old_version_is_refused_when_a_newer_one_is_asked_for) {
  authority ca;
  tls_redis server(ca, ca.issue({.names = "DNS:localhost"}), {"--tls-protocols", "TLSv1.2"});
  auto options = over_tls(server.tls_port(), ca);
  options.tls.minimum = tls_version::v1_3;
  auto const why = refused_by_tls(options);
  EXPECT_EQ(why.code, errc::tls_failed) << why;
  EXPECT_EQ(why.phase, phase::tls) << why;
  EXPECT_NE(why.message().find("no version of TLS in common"), std::string::npos) << why;
  options.tls.minimum = tls_version::v1_2;
  running_context context;
  client redis(context.io(), options);
  EXPECT_TRUE(call(redis, command("PING")));
}

TEST(tls_trust, C73_files_that_cannot_be_used_are_named_where_the_client_is_made) {
  authority ca;
  enable_tls();
  running_context context;
  auto const locked = ca.issue({.names = "DNS:shop.test", .key_password = "S3cr3t-key"});
  auto const other = ca.issue({.names = "DNS:shop.test"});
  struct row {
    tls_options tls;
    std::string_view says;
  };
  auto const missing = ca.ca_file() + ".missing";
  std::vector<row> const table{
      {{.enabled = true, .ca_file = missing}, "tls.ca_file = "},
      {{.enabled = true, .ca_file = locked.key}, "tls.ca_file = "},
      {{.enabled = true, .certificate_file = missing}, "tls.certificate_file = "},
      {{.enabled = true, .certificate_file = other.certificate, .key_file = missing}, "tls.key_file = "},
      {{.enabled = true, .certificate_file = other.certificate}, "tls.certificate_file (for its key) = "},
      {{.enabled = true, .certificate_file = other.certificate, .key_file = locked.key}, "tls.key_file = "},
      {{.enabled = true,
        .certificate_file = locked.certificate,
        .key_file = locked.key,
        .key_password = "wrong-S3cr3t"},
       "tls.key_file = "},
      {{.enabled = true,
        .certificate_file = other.certificate,
        .key_file = locked.key,
        .key_password = "S3cr3t-key"},
       "key values mismatch"},
  };
  for (auto const& one : table) {
    SCOPED_TRACE(one.says);
    try {
      client never(context.io(), {.tls = one.tls});
      ADD_FAILURE() << "accepted";
    } catch (std::invalid_argument const& e) {
      EXPECT_NE(std::string_view(e.what()).find(one.says), std::string_view::npos) << e.what();
      EXPECT_EQ(std::string_view(e.what()).find("S3cr3t"), std::string_view::npos) << e.what();
    }
  }
}

}  // namespace
