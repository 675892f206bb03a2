// SPDX-License-Identifier: BSL-1.0
//
// The same commands to a real redis-server and to the fake one, and the bytes that come back side by side.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <redoubt/testing/fake_server.hpp>

#include "raw_redis.hpp"
#include "real_redis.hpp"

namespace redoubt::test_support {

using words = std::vector<std::string>;

/// A real and a fake server, with connections that are opened in pairs and named by numbers from 0.
class parity {
 public:
  explicit parity(std::vector<std::string> arguments = {}, testing::fake_server_options options = {})
      : real(std::move(arguments)),
        fake(with_real_time(std::move(options))) {
    connect();
  }

  /// Opens a connection to each; its number.
  std::size_t connect() {
    auto const session = fake.open(now());
    peers_.push_back(std::make_unique<raw_redis>(real.port()));
    sessions_.push_back(session);
    return sessions_.size() - 1;
  }

  /// What the fake answers; "<nothing>" or "<closed>" like `raw_redis::call`.
  std::string ask_fake(words const& w, std::size_t on = 0) {
    fake.on_bytes(sessions_.at(on), encode(w), now());
    return from_fake(on);
  }

  /// Takes what the fake has sent on this connection meanwhile: one reply.
  std::string from_fake(std::size_t on = 0) {
    for (auto& out : fake.take_output()) {
      pending_[out.to] += out.bytes;
      ended_[out.to] = ended_[out.to] || out.close || out.reset;
    }
    auto const session = sessions_.at(on);
    auto& bytes = pending_[session];
    auto const length = reply_length(bytes);
    if (length == 0) return ended_[session] ? "<closed>" : "<nothing>";
    auto reply = bytes.substr(0, length);
    bytes.erase(0, length);
    return reply;
  }

  std::string ask_real(words const& w, std::size_t on = 0,
                       std::chrono::milliseconds limit = std::chrono::milliseconds(5000)) {
    return peers_.at(on)->call(w, limit);
  }

  /// Both must give the same bytes.
  void same(words const& w, std::size_t on = 0) {
    auto const expected = ask_real(w, on);
    EXPECT_EQ(ask_fake(w, on), expected) << "for " << text(w) << " on connection " << on;
  }
  void same_all(std::initializer_list<words> all, std::size_t on = 0) {
    for (auto const& w : all) same(w, on);
  }

  /// Both must stay silent: the real one for `wait`.
  void silent(words const& w, std::size_t on = 0,
              std::chrono::milliseconds wait = std::chrono::milliseconds(60)) {
    EXPECT_EQ(ask_real(w, on, wait), "<nothing>") << text(w);
    EXPECT_EQ(ask_fake(w, on), "<nothing>") << text(w);
  }

  /// Sends raw bytes to both and compares one reply.
  void same_bytes(std::string const& bytes, std::size_t on) {
    auto& peer = *peers_.at(on);
    peer.send(bytes);
    auto const reply = peer.read(std::chrono::milliseconds(2000));
    fake.on_bytes(sessions_.at(on), bytes, now());
    EXPECT_EQ(from_fake(on), reply.value_or(peer.closed() ? "<closed>" : "<nothing>")) << bytes;
  }

  [[nodiscard]] raw_redis& peer(std::size_t on = 0) { return *peers_.at(on); }
  [[nodiscard]] testing::fake_server::session session(std::size_t on = 0) const { return sessions_.at(on); }
  [[nodiscard]] static time_point now() { return std::chrono::steady_clock::now(); }

  static std::string text(words const& w) {
    std::string out;
    for (auto const& one : w) out += (out.empty() ? "" : " ") + one;
    return out;
  }

 private:
  // EXAT and TIME need the same wall clock on both sides.
  static testing::fake_server_options with_real_time(testing::fake_server_options options) {
    options.unix_time_at_zero = std::chrono::duration_cast<duration>(
        std::chrono::system_clock::now().time_since_epoch() - now().time_since_epoch());
    return options;
  }

 public:
  real_redis real;
  testing::fake_server fake;

 private:
  std::vector<std::unique_ptr<raw_redis>> peers_;
  std::vector<testing::fake_server::session> sessions_;
  std::map<testing::fake_server::session, std::string> pending_;
  std::map<testing::fake_server::session, bool> ended_;
};

}  // namespace redoubt::test_support
