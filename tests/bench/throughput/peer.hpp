// SPDX-License-Identifier: BSL-1.0
//
// What the throughput measurement asks of every client that takes part, and what they have in common: the
// keys and values, the end of a run, the numbers of one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

enum class operation : std::uint8_t { get, set };

/// What is measured: one command, so many of them under way at any time.
struct cell {
  operation op = operation::get;
  std::size_t in_flight = 1;
};

/// What one run of one peer in one cell came to.
struct sample {
  double seconds = 0;
  double cpu_us = 0;              ///< Of this whole process, user and system.
  std::uint64_t answers = 0;      ///< Replies that came, right or wrong.
  std::uint64_t wrong = 0;        ///< Replies that were not what the server holds.
  std::uint64_t failed = 0;       ///< Calls that ended without a reply.
  std::uint64_t allocations = 0;  ///< malloc, calloc and realloc, operator new included.
  std::vector<float> waits_us{};  ///< Of every call; only with one in flight.
};

/// A client of Redis under measurement, with its connections, which stay open between runs.
class peer {
 public:
  virtual ~peer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// One sentence: how the client is used here.
  [[nodiscard]] virtual std::string_view about() const = 0;
  [[nodiscard]] virtual bool takes(cell const&) const { return true; }
  /// Keeps `what.in_flight` commands under way for `seconds`, then waits for the last of them. Throws
  /// `std::runtime_error` when the connection cannot be made or is lost.
  virtual sample run(cell const& what, double seconds) = 0;
};

using peer_list = std::vector<std::unique_ptr<peer>>;

/// Each adds what it has been built with, connected to 127.0.0.1:`port`.
void add_redoubt(peer_list& peers, int port);
void add_hiredis(peer_list& peers, int port);
void add_hiredis_async(peer_list& peers, int port);

/// Writes every key once, so that every GET has an answer.
void fill(int port);

constexpr std::size_t key_count = 1000;
[[nodiscard]] std::string const& key(std::size_t i);
/// 100 bytes, different for each key.
[[nodiscard]] std::string const& value(std::size_t i);

/// Takes the numbers of a run: made at its begin, asked at its end.
class run_meter {
 public:
  run_meter(cell const& what, double seconds);

  /// True once the time is up. Reads the clock at every 16th question only.
  [[nodiscard]] bool over() noexcept { return over_ || ((++asked_ & 15) == 0 && look()); }

  /// The key for the next command.
  [[nodiscard]] std::size_t next_key() noexcept {
    if (++last_key_ == key_count) last_key_ = 0;
    return last_key_;
  }

  /// With one in flight each call's wait is taken.
  void call_begins() noexcept {
    if (single_) began_ = std::chrono::steady_clock::now();
  }
  void call_ends() {
    if (single_) take_wait();
  }

  /// A value came for key `i`. For a GET.
  void answered(std::string_view text, std::size_t i) {
    ++numbers_.answers;
    if (text != value(i)) ++numbers_.wrong;
  }
  /// A status line came. For a SET.
  void acknowledged(std::string_view text) {
    ++numbers_.answers;
    if (text != "OK") ++numbers_.wrong;
  }
  /// A reply of another type than the command has.
  void answered_otherwise() {
    ++numbers_.answers;
    ++numbers_.wrong;
  }
  void failed() { ++numbers_.failed; }

  [[nodiscard]] sample finish();

 private:
  bool look() noexcept;
  void take_wait();

  sample numbers_;
  bool single_;
  bool over_ = false;
  std::uint32_t asked_ = 0;
  std::size_t last_key_ = 0;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point end_;
  std::chrono::steady_clock::time_point began_{};
  double cpu_begin_;
  std::uint64_t allocations_begin_;
};

/// User and system time of this process.
[[nodiscard]] double cpu_us();

}  // namespace bench
