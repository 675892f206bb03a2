// SPDX-License-Identifier: BSL-1.0
//
// What the throughput measurement asks of every client that takes part, and what they have in common: the
// keys and values, the end of a run, the numbers of one.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// How the calls of a load look.
enum class shape : std::uint8_t {
  get,    ///< GET of one value.
  set,    ///< SET of one value, to what it is already.
  range,  ///< LRANGE of a whole list.
  batch,  ///< `batch_size` GETs that are sent together.
};

/// What is asked for. The keys of a load have values of its size, each different.
struct load {
  std::string_view name;
  shape what = shape::get;
  std::size_t bytes = 0;     ///< Of a value, or of an element of a list.
  std::size_t keys = 0;      ///< How many there are.
  std::size_t elements = 0;  ///< Of a list.
};

constexpr std::size_t batch_size = 100;

/// All loads, in the order of the table.
inline constexpr std::array loads = {
    load{"get", shape::get, 100, 1000, 0},         load{"set", shape::set, 100, 1000, 0},
    load{"get-10k", shape::get, 10'240, 100, 0},   load{"set-10k", shape::set, 10'240, 100, 0},
    load{"get-1m", shape::get, 1'048'576, 4, 0},   load{"set-1m", shape::set, 1'048'576, 4, 0},
    load{"list-1000", shape::range, 12, 10, 1000}, load{"batch-100", shape::batch, 100, 1000, 0},
};

/// What is measured: a load, so many calls of it under way at any time.
struct cell {
  load const* of = loads.data();
  std::size_t in_flight = 1;
  friend bool operator==(cell const&, cell const&) = default;
};

/// What one run of one peer in one cell came to.
struct sample {
  double seconds = 0;
  double cpu_us = 0;              ///< Of this whole process, user and system.
  std::uint64_t answers = 0;      ///< Replies that came, right or wrong; each command of a batch has one.
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
void add_redis_benchmark(peer_list& peers, int port);
void add_threads(peer_list& peers, int port);
/// These two: false where the build has not found them.
[[nodiscard]] bool add_boost_redis(peer_list& peers, int port);
[[nodiscard]] bool add_redis_plus_plus(peer_list& peers, int port);

/// Writes every key of a load once, so that every question has an answer.
void fill(load const& of, int port);

/// The keys of a load and what they hold.
struct contents {
  explicit contents(load const& of);
  std::vector<std::string> keys;
  std::vector<std::string> values;  ///< Of key `i`; with lists, of element `j` at `i * elements + j`.
};

/// Made once. Thread-safe.
[[nodiscard]] contents const& contents_of(load const& of);

/// Takes the numbers of a run: made at its begin, asked at its end.
class run_meter {
 public:
  run_meter(cell const& what, double seconds);

  /// True once the time is up. Reads the clock at every 16th question only.
  [[nodiscard]] bool over() noexcept { return over_ || ((++asked_ & 15) == 0 && look()); }

  /// The key for the next command.
  [[nodiscard]] std::size_t next_key() noexcept {
    if (++last_key_ >= load_.keys) last_key_ = 0;
    return last_key_;
  }

  [[nodiscard]] load const& of() const noexcept { return load_; }
  [[nodiscard]] std::string const& key(std::size_t i) const noexcept { return data_.keys[i]; }
  [[nodiscard]] std::string const& value(std::size_t i) const noexcept { return data_.values[i]; }

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
    if (text != data_.values[i]) ++numbers_.wrong;
  }
  /// A list came for key `i`; `text_of(j)` is its element `j`.
  template <class TextOf>
  void answered_list(std::size_t size, std::size_t i, TextOf text_of) {
    ++numbers_.answers;
    bool right = size == load_.elements;
    for (std::size_t j = 0; right && j < size; ++j) right = text_of(j) == data_.values[i * size + j];
    if (!right) ++numbers_.wrong;
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

  load const& load_;
  contents const& data_;
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
