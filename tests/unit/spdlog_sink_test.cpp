// SPDX-License-Identifier: BSL-1.0
#if __has_include(<spdlog/spdlog.h>)
#include <sstream>

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <redoubt/adapters/spdlog.hpp>
#include <redoubt/format.hpp>
#include <redoubt/resp/reply.hpp>

namespace {

using namespace redoubt;

struct fixture {
  std::ostringstream out;
  std::shared_ptr<spdlog::logger> logger =
      std::make_shared<spdlog::logger>("t", std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
  fixture() {
    logger->set_pattern("%l %v");
    logger->set_level(spdlog::level::debug);
  }
};

TEST(spdlog_sink, writes_one_line_per_change_and_counts_repetitions) {
  fixture f;
  failure const refused{.code = errc::connection_refused, .effect = effect::none, .phase = phase::connect};
  failure const lost{.code = errc::connection_lost, .effect = effect::unknown, .phase = phase::read};
  {
    spdlog_sink sink(f.logger);
    for (int i = 0; i < 5; ++i) sink.on({event_kind::call_rejected, "shop", &refused});
    sink.on({event_kind::lost, "shop", &lost});
    sink.on({event_kind::ready, "shop", nullptr});
    sink.on({event_kind::ready, "shop", nullptr});
  }
  EXPECT_EQ(f.out.str(),
            "warning shop: call_rejected: connection refused while connecting: it was not executed\n"
            "warning shop: call_rejected repeated 4 times\n"
            "warning shop: lost: connection lost while reading: it may have been executed\n"
            "info shop: ready\n"
            "info shop: ready repeated 1 times\n");
}

TEST(spdlog_sink, refuses_a_null_logger) { EXPECT_THROW(spdlog_sink(nullptr), std::invalid_argument); }

TEST(format, prints_enums_failures_and_replies) {
  failure const f{.code = errc::queue_full, .effect = effect::none, .rejected = true};
  EXPECT_EQ(fmt::format("{} {}", errc::queue_full, f),
            "queue_full too many calls or bytes under way: Redis did not execute it");
  EXPECT_EQ(fmt::format("{}", reply(std::string("v"))), "\"v\"");
}

}  // namespace
#endif
