// Each rule of the tree is fed bad samples and must see them, and good ones and must stay quiet.
#include "tree_rules.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using tidy::breaches;
using tidy::source_file;

breaches includes(std::string const& path, std::string const& line) {
  return tidy::check_includes({path, line + "\n"});
}

breaches calls(std::string const& path, std::string const& text) {
  return tidy::check_banned_calls({path, text});
}

struct sample {
  char const* path;
  char const* line;
};

TEST(include_rule, sees_each_forbidden_include) {
  for (sample const& bad : std::vector<sample>{
           {"include/redoubt/core/a.hpp", "#include <redoubt/resp/reply.hpp>"},
           {"include/redoubt/core/a.hpp", "#include <boost/asio.hpp>"},
           {"include/redoubt/core/a.hpp", "#include <boost/container/flat_map.hpp>"},
           {"include/redoubt/core/a.hpp", "#include \"../fsm/backoff.hpp\""},
           {"include/redoubt/resp/a.hpp", "#include <hiredis/hiredis.h>"},
           {"include/redoubt/resp/a.hpp", "#include <redoubt/fsm/call_queue.hpp>"},
           {"src/resp/a.cpp", "#include <boost/asio/buffer.hpp>"},
           {"include/redoubt/fsm/a.hpp", "#include <redoubt/async/clock.hpp>"},
           {"include/redoubt/fsm/a.hpp", "#include <boost/asio/any_io_executor.hpp>"},
           {"src/fsm/a.cpp", "#include <fmt/format.h>"},
           {"src/fsm/a.cpp", "# include <mutex>"},
           {"src/fsm/a.cpp", "#include <hiredis/read.h>"},
           {"include/redoubt/async/a.hpp", "#include <redoubt/fsm/call_queue.hpp>"},
           {"include/redoubt/async/a.hpp", "#include <redoubt/net/connection.hpp>"},
           {"include/redoubt/net/a.hpp", "#include <redoubt/client.hpp>"},
           {"include/redoubt/net/a.hpp", "#include <redoubt/policy/cache_aside.hpp>"},
           {"include/redoubt/net/a.hpp", "#include <redoubt/guard/retry.hpp>"},
           {"src/net/a.cpp", "#include <hiredis/hiredis.h>"},
           {"include/redoubt/client.hpp", "#include <redoubt/policy/cache_aside.hpp>"},
           {"src/client.cpp", "#include <redoubt/guard/retry.hpp>"},
           {"src/client.cpp", "#include <redoubt/adapters/spdlog.hpp>"},
           {"include/redoubt/guard/a.hpp", "#include <redoubt/net/connection.hpp>"},
           {"include/redoubt/guard/a.hpp", "#include <redoubt/client.hpp>"},
           {"include/redoubt/policy/a.hpp", "#include <redoubt/client.hpp>"},
           {"include/redoubt/policy/a.hpp", "#include <redoubt/net/connection.hpp>"},
           {"include/redoubt/policy/a.hpp", "#include <fmt/core.h>"},
           {"include/redoubt/adapters/spdlog.hpp", "#include <spdlog/spdlog.h>"},
           {"src/adapters/spdlog.cpp", "#include <redoubt/resp/reply.hpp>"},
           {"src/net/a.cpp", "#include <spdlog/spdlog.h>"},
           {"include/redoubt/testing/a.hpp", "#include <redoubt/client.hpp>"},
           {"src/testing/a.cpp", "#include <redoubt/policy/admission.hpp>"},
           {"examples/quickstart.cpp", "#include <redoubt/fsm/backoff.hpp>"},
           {"examples/shop/a.cpp", "#include \"../../src/net/dial.hpp\""},
           {"examples/quickstart.cpp", "#include <hiredis/hiredis.h>"},
           {"src/extra/a.cpp", "#include <vector>"},
       }) {
    EXPECT_EQ(includes(bad.path, bad.line).size(), 1U) << bad.path << ": " << bad.line;
  }
}

TEST(include_rule, accepts_what_the_table_allows) {
  for (sample const& good : std::vector<sample>{
           {"include/redoubt/core/a.hpp", "#include <boost/system/result.hpp>"},
           {"include/redoubt/core/a.hpp", "#include <redoubt/core/error.hpp>"},
           {"include/redoubt/core/a.hpp", "#include \"error.hpp\""},
           {"src/core/a.cpp", "#include <fmt/format.h>"},
           {"src/resp/reader.cpp", "#include <hiredis/read.h>"},
           {"include/redoubt/fsm/a.hpp", "#include <redoubt/resp/reply.hpp>"},
           {"include/redoubt/async/a.hpp", "#include <boost/asio/deferred.hpp>"},
           {"src/net/a.cpp", "#include <sys/socket.h>"},
           {"include/redoubt/client.hpp", "#include <redoubt/net/connection.hpp>"},
           {"src/client.cpp", "#include <redoubt/options.hpp>"},
           {"include/redoubt/guard/a.hpp", "#include <redoubt/fsm/breaker.hpp>"},
           {"include/redoubt/policy/a.hpp", "#include <redoubt/guard/bulkhead.hpp>"},
           {"src/adapters/spdlog.cpp", "#include <spdlog/spdlog.h>"},
           {"src/testing/a.cpp", "#include <lua.hpp>"},
           {"examples/shop/a.cpp", "#include <sqlite3.h>"},
           {"examples/outage/a.cpp", "#include \"../shop/shop.hpp\""},
           {"tests/bench/peers_bench.cpp", "#include <hiredis/hiredis.h>"},
           {"tests/fsm/a_test.cpp", "#include <redoubt/fsm/call_queue.hpp>"},
       }) {
    EXPECT_EQ(includes(good.path, good.line), breaches{}) << good.path << ": " << good.line;
  }
}

TEST(include_rule, names_file_and_line) {
  auto const found = tidy::check_includes({"src/core/a.cpp", "// head\n\n#include <redoubt/net/tcp.hpp>\n"});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], "src/core/a.cpp:3: core may not include redoubt/net/tcp.hpp (layer net)");
}

TEST(hiredis_rule, sees_a_second_user) {
  source_file const one{"src/resp/reader.cpp", "#include <hiredis/read.h>\n"};
  source_file const other{"src/resp/command.cpp", "#include <hiredis/hiredis.h>\n"};
  source_file const bench{"tests/bench/peers_bench.cpp", "#include <hiredis/hiredis.h>\n"};
  EXPECT_EQ(tidy::check_single_hiredis({one, other}).size(), 1U);
  EXPECT_EQ(tidy::check_single_hiredis({one, bench}), breaches{});
}

TEST(length_rule, allows_400_lines_and_no_more) {
  std::string lines;
  for (int i = 0; i != 400; ++i) lines += "\n";
  EXPECT_EQ(tidy::check_length({"src/a.cpp", lines}), breaches{});
  EXPECT_EQ(tidy::check_length({"src/a.cpp", lines + "\n"}).size(), 1U);
}

TEST(call_rule, sees_clocks_sleeps_threads_and_distributions) {
  for (char const* bad : {
           "auto t = std::chrono::steady_clock::now();",
           "auto t = system_clock::now();",
           "clock_gettime(CLOCK_MONOTONIC, &ts);",
           "std::this_thread::sleep_for(1ms);",
           "usleep(10);",
           "x = 1; sleep(1);",
           "std::thread worker{[] {}};",
           "std::jthread worker;",
           "std::uniform_int_distribution<int> d{0, 9};",
       }) {
    EXPECT_EQ(calls("src/net/driver.cpp", bad).size(), 1U) << bad;
    EXPECT_EQ(calls("include/redoubt/net/driver.hpp", bad).size(), 1U) << bad;
    EXPECT_EQ(calls("tests/net/driver_test.cpp", bad), breaches{}) << bad;
  }
  EXPECT_EQ(calls("src/fsm/a.cpp", "std::function<void()> f;").size(), 1U);
}

TEST(call_rule, stays_quiet_where_it_should) {
  EXPECT_EQ(calls("src/async/clock.cpp", "return std::chrono::steady_clock::now();"), breaches{});
  EXPECT_EQ(calls("src/net/resolver.cpp", "std::thread worker{[] {}};"), breaches{});
  EXPECT_EQ(calls("src/net/resolver.cpp", "std::uniform_int_distribution<int> d;").size(), 1U);
  for (char const* good : {
           "// steady_clock::now() is read elsewhere",
           "/* std::thread */ int a = 1'000;",
           "auto text = \"std::thread\"; char c = '\"';",
           "auto text = R\"(sleep_for)\";",
           "std::thread::id owner;",
           "steady_timer timer{executor};",
           "using time_point = std::chrono::steady_clock::time_point;",
       }) {
    EXPECT_EQ(calls("src/net/driver.cpp", good), breaches{}) << good;
  }
}

TEST(call_rule, is_not_blinded_by_what_precedes) {
  EXPECT_EQ(calls("src/a.cpp", "auto a = '\\''; auto b = \"\\\"\"; std::thread t;").size(), 1U);
  EXPECT_EQ(calls("src/a.cpp", "auto a = R\"x(\")x\"; std::thread t;").size(), 1U);
  EXPECT_EQ(calls("src/a.cpp", "int a = 1'0; /* \" */ std::thread t;").size(), 1U);
}

TEST(leftover_rule, sees_each_word) {
  for (std::string const& word :
       {std::string{"TO"} + "DO", std::string{"FIX"} + "ME", std::string{"XX"} + "X"}) {
    EXPECT_EQ(tidy::check_leftovers({"src/a.cpp", "int a;  // " + word + ": later\n"}).size(), 1U) << word;
  }
  EXPECT_EQ(tidy::check_leftovers({"src/a.cpp", "// nothing is left\n"}), breaches{});
}

TEST(header_rule, wants_more_than_a_licence_line) {
  auto const check = [](std::string const& text) {
    return tidy::check_header_comment({"include/redoubt/a.hpp", text});
  };
  EXPECT_EQ(check("#pragma once\n\n#include <vector>\n").size(), 1U);
  EXPECT_EQ(check("// SPDX-License-Identifier: BSL-1.0\n//\n#pragma once\nstruct a {};\n").size(), 1U);
  EXPECT_EQ(check("// SPDX-License-Identifier: BSL-1.0\n//\n// What this owns.\n#pragma once\n"), breaches{});
  EXPECT_EQ(check("#pragma once\n\n/// What this owns.\n"), breaches{});
}

TEST(top_level_rule, wants_exactly_the_agreed_entries) {
  std::vector<std::string> names{"CMakeLists.txt", "include", "src",     "tests",     "examples",
                                 "cmake",          "docs",    "LICENSE", "README.md", ".git"};
  EXPECT_EQ(tidy::check_top_level(names), breaches{});
  names.emplace_back("scripts");
  EXPECT_EQ(tidy::check_top_level(names).size(), 1U);
  names.erase(names.begin());
  EXPECT_EQ(tidy::check_top_level(names).size(), 2U);
}

}  // namespace
