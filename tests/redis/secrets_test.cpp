// SPDX-License-Identifier: BSL-1.0
//
// C73: marked secrets go in wherever a secret can go in, everything that can go wrong is made to, and
// everything that comes out in words is searched for them.
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_future.hpp>
#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <redoubt/adapters/spdlog.hpp>
#include <redoubt/format.hpp>

#include "client_rig.hpp"

namespace {

using namespace redoubt;
using namespace redoubt::test_support;
namespace asio = boost::asio;

constexpr std::string_view marks[] = {"S3cr3t-pw", "S3cr3t-user", "user:42:mail", "payload-42"};

/// Everything in words that the library has said.
class listener final : public event_sink {
 public:
  listener() {
    auto const sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log_);
    auto const logger = std::make_shared<spdlog::logger>("all", sink);
    logger->set_level(spdlog::level::trace);
    spdlog_ = std::make_unique<spdlog_sink>(logger);
  }

  void on(event const& e) noexcept override {
    spdlog_->on(e);
    std::lock_guard const lock(mutex_);
    ++events_;
    words_ << e.source << to_string(e.kind) << '\n';
    if (e.cause) take(*e.cause);
  }
  void hear(failure const& why) {
    std::lock_guard const lock(mutex_);
    take(why);
  }
  void hear(std::string_view text) {
    std::lock_guard const lock(mutex_);
    words_ << text << '\n';
  }
  void hear(result<reply> const& got) {
    if (got) return;
    hear(got.error());
    codes_ += std::string(to_string(got.error().code)) + " ";
  }

  void expect_no_secret() {
    spdlog_->flush();
    std::lock_guard const lock(mutex_);
    auto const all = words_.str() + log_.str();
    for (auto const mark : marks) {
      auto const at = all.find(mark);
      EXPECT_EQ(at, std::string::npos) << all.substr(at < 200 ? 0 : at - 200, 400);
    }
    EXPECT_FALSE(log_.str().empty());
    EXPECT_GT(events_, 0);
  }
  /// The codes of all failures that were heard of.
  [[nodiscard]] std::string const& codes() const noexcept { return codes_; }

 private:
  void take(failure const& why) {
    std::ostringstream printed;
    printed << why << why.code << why.server << why.effect << why.phase;
    words_ << printed.str() << why.message() << fmt::format("{}", why) << why.command.view() << '\n';
    words_ << call_error(why).what() << '\n';
    if (why.detail) words_ << why.detail->endpoint << why.detail->note << why.detail->server_text << '\n';
  }

  std::mutex mutex_;
  std::ostringstream words_;
  std::ostringstream log_;
  std::unique_ptr<spdlog_sink> spdlog_;
  std::string codes_;
  int events_ = 0;
};

struct provider final : credentials_provider {
  void get(reply done) override { done(credentials{"S3cr3t-user", "S3cr3t-pw"}); }
};

struct throwing final : credentials_provider {
  void get(reply) override { throw std::runtime_error("S3cr3t-pw is not accepted by the vault"); }
};

TEST(secrets, C73_of_a_login_that_fails_are_said_nowhere) {
  real_redis server({"--requirepass", "right"});
  running_context context;
  listener ears;
  auto const at = "127.0.0.1:" + std::to_string(server.port());
  std::vector<client_options> ways(5, patient(server));
  ways[0].login = {.user = "S3cr3t-user", .password = "S3cr3t-pw"};
  ways[1].url = "redis://S3cr3t-user:S3cr3t-pw@" + at + "/1";
  ways[1].address = {};
  ways[2].credentials = std::make_shared<provider>();
  ways[3].credentials = std::make_shared<throwing>();
  ways[4].login.password = "S3cr3t-pw";
  ways[4].address.port = 1;  // refused before
  for (auto& options : ways) {
    options.events = &ears;
    client redis(context.io(), options);
    for (int i = 0; i < 3; ++i) ears.hear(call(redis, command("SET", "user:42:mail", "payload-42")));
    for (auto const& one : redis.async_pending(asio::use_future).get()) ears.hear(one.command.view());
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_NE(ears.codes().find("server_error"), std::string::npos);
  EXPECT_NE(ears.codes().find("no_credentials"), std::string::npos);
  EXPECT_NE(ears.codes().find("connection_refused"), std::string::npos);
  ears.expect_no_secret();
}

TEST(secrets, C73_in_urls_and_options_that_are_refused_are_not_shown) {
  running_context context;
  listener ears;
  client_options both{.url = "redis://S3cr3t-user:S3cr3t-pw@h"};
  both.credentials = std::make_shared<provider>();
  for (auto const& options : {client_options{.url = "redis://S3cr3t-user:S3cr3t-pw@h:99999"},
                              client_options{.url = "redis://S3cr3t-user:S3cr3t-pw@h/x"},
                              client_options{.url = "redis://S3cr3t-user:S3cr3t-pw"},
                              client_options{.url = "rediss://S3cr3t-user:S3cr3t-pw@h?verify=no"},
                              client_options{.url = "http://S3cr3t-user:S3cr3t-pw@h"},
                              client_options{.url = "redis://S3cr3t-user:S3cr3t-pw#@h"},
                              client_options{.login = {.user = "S3cr3t-user"}},
                              client_options{.login = {.user = "S3cr3t-user", .password = "S3cr3t-pw"},
                              .tls = {.key_password = "S3cr3t-pw"}},
                              client_options{.tls = {.enabled = true, .key_password = "S3cr3t-pw"}}, both}) {
    ears.hear(options.validate().error());
    try {
      client never(context.io(), options);
      ADD_FAILURE() << "accepted";
    } catch (std::invalid_argument const& e) {
      ears.hear(std::string_view(e.what()));
    }
  }
  event const something{event_kind::ready, "x", nullptr};
  ears.on(something);
  ears.expect_no_secret();
}

TEST(secrets, C73_in_commands_are_said_nowhere_whatever_becomes_of_them) {
  real_redis server;
  raw_redis admin(server.port());
  running_context context;
  listener ears;
  auto options = patient(server);
  options.events = &ears;
  options.bounds.queued_bytes = 4096;
  {
    client redis(context.io(), options);
    ears.hear(call(redis, command("LPUSH", "user:42:mail", "payload-42")));
    // Ours to refuse.
    ears.hear(call(redis, command("AUTH", "S3cr3t-user", "S3cr3t-pw")));
    ears.hear(call(redis, command("HELLO", "2", "AUTH", "S3cr3t-user", "S3cr3t-pw")));
    ears.hear(call(redis, command("SUBSCRIBE", "user:42:mail")));
    ears.hear(call(redis, command("SET", "user:42:mail", "payload-42" + std::string(8192, 'x'))));
    // The server's to refuse; it echoes what it does not know.
    ears.hear(call(redis, command("S3CR", "S3cr3t-pw", "user:42:mail", "payload-42")));
    ears.hear(call(redis, command("GET", "user:42:mail")));
    ears.hear(call(redis, command("INCRBY", "user:42:mail", "payload-42")));
    ears.hear(call(redis, command("ACL", "SETUSER", "S3cr3t-user", "S3cr3t-pw-without-the-mark")));
    ears.hear(call(redis, command("CONFIG", "SET", "S3cr3t-pw", "S3cr3t-pw")));
    ears.hear(call(redis, command("MIGRATE", "h", "x", "user:42:mail", "0", "1", "AUTH", "S3cr3t-pw")));
    ears.hear(call(redis, command("CLIENT", "S3cr3t-pw")));
    script const wrong("return redis.call('INCR', KEYS[1]) + ARGV[1]");
    ears.hear(redis.async_eval(wrong, keys("user:42:mail"), args("payload-42"), {}, asio::use_future).get());
    ears.hear(call(redis, command("EVAL", "return nonsense(ARGV[1])", 0, "S3cr3t-pw")));
    for (auto const& one :
         redis
             .async_pipeline(pipeline(command("GET", "user:42:mail"), command("S3CR", "S3cr3t-pw")), {},
                             asio::use_future)
             .get()) {
      ears.hear(one);
    }
    auto const block =
        redis
            .async_transaction(transaction(command("SET", "user:42:mail"), command("S3CR", "S3cr3t-pw")), {},
                               asio::use_future)
            .get();
    if (!block) ears.hear(block.error());
    // Time, cancellation, loss, close.
    server.pause();
    ears.hear(call(redis, command("SET", "user:42:mail", "payload-42"), {.budget = 20ms}));
    asio::cancellation_signal stop;
    auto cancelled = redis.async_call(command("SET", "user:42:mail", "payload-42"), {},
                                      asio::bind_cancellation_slot(stop.slot(), asio::use_future));
    for (auto const& one : redis.async_pending(asio::use_future).get()) ears.hear(one.command.view());
    stop.emit(asio::cancellation_type::all);
    ears.hear(cancelled.get());
    auto lost = redis.async_call(command("SET", "user:42:mail", "payload-42"), {}, asio::use_future);
    server.kill();
    ears.hear(lost.get());
    for (int i = 0; i < 5; ++i) ears.hear(call(redis, command("SET", "user:42:mail", "payload-42")));
    redis.async_close(0ms, asio::use_future).get();
    ears.hear(call(redis, command("SET", "user:42:mail", "payload-42")));
  }
  for (auto const code : {"refused_command", "request_too_large", "server_error", "deadline_exceeded",
                          "cancelled", "connection_lost", "connection_refused", "closed"}) {
    EXPECT_NE(ears.codes().find(code), std::string::npos) << code << " was not provoked: " << ears.codes();
  }
  ears.expect_no_secret();
}

}  // namespace
