// SPDX-License-Identifier: BSL-1.0
//
// Classes and messages of failures, for every code.
#include <redoubt/core/failure.hpp>

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/core/events.hpp>
#include <redoubt/core/result.hpp>

namespace {

using namespace std::chrono_literals;
using redoubt::command_name;
using redoubt::effect;
using redoubt::errc;
using redoubt::failure;
using redoubt::failure_class;
using redoubt::failure_detail;
using redoubt::phase;
using redoubt::server_errc;

constexpr auto last_code = errc::forked;
constexpr auto last_server_code = server_errc::nogroup;

std::vector<errc> codes() {
  std::vector<errc> out;
  for (int i = 0; i <= static_cast<int>(last_code); ++i) out.push_back(static_cast<errc>(i));
  return out;
}

std::vector<server_errc> server_codes() {
  std::vector<server_errc> out;
  for (int i = 0; i <= static_cast<int>(last_server_code); ++i) out.push_back(static_cast<server_errc>(i));
  return out;
}

// docs/ERRORS.md in one table.
std::map<errc, failure_class> const own_classes{
    {errc::unspecified, failure_class::unavailable},
    {errc::deadline_exceeded, failure_class::unavailable},
    {errc::cancelled, failure_class::cancelled},
    {errc::connection_refused, failure_class::unavailable},
    {errc::connect_timeout, failure_class::unavailable},
    {errc::connect_failed, failure_class::unavailable},
    {errc::resolve_failed, failure_class::unavailable},
    {errc::connection_lost, failure_class::unavailable},
    {errc::connection_stalled, failure_class::unavailable},
    {errc::protocol_error, failure_class::unavailable},
    {errc::reply_too_large, failure_class::unavailable},
    {errc::request_too_large, failure_class::caller_error},
    {errc::queue_full, failure_class::saturated},
    {errc::closed, failure_class::unavailable},
    {errc::bad_option, failure_class::misconfigured},
    {errc::refused_command, failure_class::caller_error},
    {errc::unexpected_reply, failure_class::caller_error},
    {errc::bulkhead_full, failure_class::saturated},
    {errc::retries_exhausted, failure_class::unavailable},
    {errc::load_timeout, failure_class::saturated},
    {errc::load_failed, failure_class::caller_error},
    {errc::breaker_open, failure_class::saturated},
    {errc::limit_exceeded, failure_class::unavailable},
    {errc::flight_full, failure_class::saturated},
    {errc::rate_limited, failure_class::saturated},
    {errc::remote_failed, failure_class::unavailable},
    {errc::remote_throttled, failure_class::saturated},
    {errc::remote_rejected, failure_class::caller_error},
    {errc::tls_failed, failure_class::unavailable},
    {errc::tls_untrusted, failure_class::misconfigured},
    {errc::no_credentials, failure_class::unavailable},
    {errc::forked, failure_class::misconfigured},
};

TEST(failure, every_code_has_its_class) {
  for (auto const code : codes()) {
    if (code == errc::server_error) continue;
    ASSERT_TRUE(own_classes.contains(code)) << code << " is not in the table";
    for (auto const server : server_codes()) {
      failure const f{.code = code, .server = server};
      EXPECT_EQ(f.group(), own_classes.at(code)) << code << " whatever the server's code is";
    }
  }
}

TEST(failure, an_error_of_the_server_has_the_servers_class) {
  for (auto const server : server_codes()) {
    failure const f{.code = errc::server_error, .server = server};
    EXPECT_EQ(f.group(), redoubt::classify(server)) << server;
  }
}

TEST(failure, what_we_rejected_ourselves_never_opens_a_breaker) {
  for (auto const code : codes()) {
    for (auto const server : server_codes()) {
      failure f{.code = code, .server = server};
      auto const before = f.group();
      f.rejected = true;
      auto const wanted = before == failure_class::unavailable ? failure_class::saturated : before;
      EXPECT_EQ(f.group(), wanted) << code << " " << server;
    }
  }
}

TEST(failure, fail_modes_apply_to_outages_and_to_nothing_else) {
  for (auto const code : codes()) {
    for (auto const server : server_codes()) {
      failure const f{.code = code, .server = server};
      auto const g = f.group();
      EXPECT_EQ(f.fail_mode_applies(), g == failure_class::unavailable || g == failure_class::write_refused ||
                                           g == failure_class::saturated)
          << code << " " << server;
    }
  }
  EXPECT_FALSE((failure{.code = errc::cancelled}.fail_mode_applies()))
      << "no fallback for a caller who has gone";
  EXPECT_FALSE((failure{.code = errc::server_error, .server = server_errc::wrongpass}.fail_mode_applies()))
      << "a wrong password must not open the door";
}

TEST(failure, every_enumerator_has_a_name_of_its_own) {
  std::map<std::string_view, int> seen;
  for (auto const code : codes()) ++seen[to_string(code)];
  for (auto const& [name, times] : seen) EXPECT_EQ(times, 1) << name;
  EXPECT_FALSE(seen.contains("invalid"));
  EXPECT_FALSE(seen.contains(""));
  EXPECT_EQ(to_string(static_cast<errc>(static_cast<int>(last_code) + 1)), "invalid")
      << "the table is complete";
  seen.clear();
  for (auto const code : server_codes()) ++seen[to_string(code)];
  for (auto const& [name, times] : seen) EXPECT_EQ(times, 1) << name;
  EXPECT_FALSE(seen.contains("invalid"));
  EXPECT_EQ(to_string(static_cast<server_errc>(static_cast<int>(last_server_code) + 1)), "invalid");
  for (int i = 0; i <= static_cast<int>(phase::done); ++i)
    EXPECT_NE(to_string(static_cast<phase>(i)), "invalid");
  for (int i = 0; i <= static_cast<int>(redoubt::event_kind::breaker_closed); ++i) {
    EXPECT_NE(to_string(static_cast<redoubt::event_kind>(i)), "invalid");
  }
}

TEST(failure, C29_the_message_says_what_where_after_how_long_and_whether_it_may_have_run) {
  auto detail = std::make_shared<failure_detail>();
  detail->endpoint = "localhost:6379";
  failure f{.code = errc::deadline_exceeded,
            .effect = effect::unknown,
            .phase = phase::read,
            .attempts = 1,
            .command = command_name("get"),
            .elapsed = 50ms,
            .detail = detail};
  EXPECT_EQ(f.message(),
            "deadline exceeded after 50 ms while reading (GET, localhost:6379): Redis may have executed it");
  f.effect = effect::none;
  f.phase = phase::queue;
  EXPECT_EQ(f.message(),
            "deadline exceeded after 50 ms while queued (GET, localhost:6379): Redis did not execute it");
}

TEST(failure, the_message_of_every_code_and_phase_is_a_sentence) {
  for (auto const code : codes()) {
    for (int p = 0; p <= static_cast<int>(phase::done); ++p) {
      for (bool const rejected : {false, true}) {
        failure f{
            .code = code, .server = server_errc::err, .phase = static_cast<phase>(p), .rejected = rejected};
        auto const text = f.message();
        EXPECT_GT(text.size(), 10u);
        EXPECT_EQ(text.find("invalid"), std::string::npos) << text;
        EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      }
    }
  }
}

TEST(failure, says_nothing_about_redis_where_redis_was_not_asked) {
  for (auto const code : {errc::bulkhead_full, errc::load_timeout, errc::load_failed, errc::breaker_open,
                          errc::limit_exceeded, errc::flight_full, errc::rate_limited, errc::remote_failed,
                          errc::remote_throttled, errc::remote_rejected}) {
    EXPECT_EQ(failure{.code = code}.message().find("Redis"), std::string::npos) << code;
  }
}

TEST(failure, says_of_a_time_limit_whether_the_operation_may_have_been_executed) {
  failure f{.code = errc::limit_exceeded, .effect = effect::unknown, .phase = phase::read};
  EXPECT_NE(f.message().find("it may have been executed"), std::string::npos) << f.message();
  f.effect = effect::none;
  EXPECT_NE(f.message().find("it was not executed"), std::string::npos) << f.message();
}

TEST(failure, tells_when_to_try_again_and_how_often_it_was_tried) {
  failure f{.code = errc::connection_refused, .effect = effect::none, .rejected = true};
  f.retry_after = 120ms;
  EXPECT_NE(f.message().find("try again in 120 ms"), std::string::npos) << f.message();
  f.attempts = 3;
  EXPECT_NE(f.message().find("3 attempts"), std::string::npos) << f.message();
}

TEST(failure, names_redis_only_where_redis_was_asked) {
  failure f{.code = errc::deadline_exceeded, .effect = effect::unknown};
  EXPECT_EQ(f.message().find("Redis"), std::string::npos) << f.message();
  EXPECT_NE(f.message().find("it may have been executed"), std::string::npos) << f.message();
  EXPECT_EQ(f.message().find("while queued"), std::string::npos)
      << "what is queued was not sent: " << f.message();
  f.command = redoubt::command_name("get");
  EXPECT_NE(f.message().find("Redis may have executed it"), std::string::npos) << f.message();
  // What `transport_failure` says of any socket.
  for (auto const code : {errc::connection_refused, errc::connect_timeout, errc::connect_failed,
                          errc::resolve_failed, errc::connection_lost, errc::protocol_error}) {
    failure other{.code = code, .effect = effect::none, .phase = phase::connect};
    EXPECT_EQ(other.message().find("Redis"), std::string::npos) << other.message();
    EXPECT_NE(other.message().find("it was not executed"), std::string::npos) << other.message();
  }
}

TEST(failure, is_cheap_to_copy_and_prints_its_message) {
  static_assert(std::is_nothrow_copy_constructible_v<failure>);
  static_assert(std::is_default_constructible_v<failure>);
  static_assert(sizeof(failure) <= 88);
  failure const f{.code = errc::closed};
  std::ostringstream out;
  out << f;
  EXPECT_EQ(out.str(), f.message());
}

TEST(failure, default_constructed_claims_the_worst) {
  failure const f;
  EXPECT_EQ(f.code, errc::unspecified);
  EXPECT_EQ(f.effect, effect::unknown);
}

TEST(command_name, C73_is_a_name_and_cannot_hold_an_argument) {
  EXPECT_EQ(command_name("get").view(), "GET");
  EXPECT_EQ(command_name("").view(), "");
  EXPECT_EQ(command_name("abcdefghijklmnopqrstuvwxyz").view(), "ABCDEFGHIJKLMNO");
  EXPECT_EQ(command_name("a\r\nb c\x7f\xff").view(), "A??B?C??");
}

TEST(result, value_throws_the_failure) {
  redoubt::result<int> const bad = failure{.code = errc::closed, .effect = effect::none};
  try {
    (void)bad.value();
    FAIL() << "no exception";
  } catch (redoubt::call_error const& e) {
    EXPECT_EQ(e.why().code, errc::closed);
    EXPECT_EQ(e.what(), e.why().message());
  }
  redoubt::result<int> const good = 3;
  EXPECT_EQ(good.value(), 3);
}

}  // namespace
