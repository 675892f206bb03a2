// SPDX-License-Identifier: BSL-1.0
//
// A fake server with one session and a time that the test sets.
#pragma once

#include <string>
#include <vector>

#include <redoubt/testing/fake_server.hpp>

namespace test {

/// Asks a fake server directly; replies come back as raw bytes.
struct probe {
  explicit probe(redoubt::testing::fake_server_options options = {}) : server(std::move(options)) {}

  static std::string encode(std::vector<std::string> const& words) {
    auto out = "*" + std::to_string(words.size()) + "\r\n";
    for (auto const& word : words) out += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    return out;
  }

  std::string ask(std::vector<std::string> const& words) {
    server.on_bytes(session, encode(words), now);
    return replies();
  }

  /// What was said on the session since it was asked last.
  std::string replies() {
    std::string out;
    for (auto const& one : server.take_output()) {
      if (one.to == session) out += one.bytes;
    }
    return out;
  }

  redoubt::testing::fake_server server;
  redoubt::time_point now{};
  redoubt::testing::fake_server::session session = server.open(now);
};

}  // namespace test
