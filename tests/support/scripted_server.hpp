// SPDX-License-Identifier: BSL-1.0
//
// A server whose behaviour on each connection is a function: read a command, answer, wait, drip, cut, reset,
// say nothing. Blocking sockets, one thread per connection; real time. Independent of everything under test.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace redoubt::test_support {

/// The words of one command.
using words = std::vector<std::string>;

/// `$5\r\nhello\r\n`.
[[nodiscard]] std::string bulk(std::string_view text);
/// `:5\r\n`.
[[nodiscard]] std::string integer(long long n);
inline constexpr std::string_view ok = "+OK\r\n";
inline constexpr std::string_view pong = "+PONG\r\n";

/// Words without case for the first of them: `is(command, "SET", "k")`.
template <class... Rest>
[[nodiscard]] bool is(words const& command, std::string_view name, Rest const&... rest) {
  std::vector<std::string_view> const wanted{name, rest...};
  if (command.size() < wanted.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (command[i] != wanted[i]) return false;
  }
  return true;
}

/// One connection as its script sees it. Every function that waits ends early, with "no", when the server is
/// stopped.
class peer {
 public:
  using clock = std::chrono::steady_clock;
  using duration = std::chrono::nanoseconds;

  /// The next command; sends what is due by `later` meanwhile. Empty at the end of the connection.
  [[nodiscard]] std::optional<words> read();
  /// Answers AUTH, SELECT, CLIENT and PING up to and with the first PING. False when the connection ended
  /// before.
  bool greet();
  /// Answers one command as a plain server does (see `answer_of`).
  bool answer(words const& command);

  /// Sends all of it. False when the connection is gone.
  bool send(std::string_view bytes);
  /// Sends `bytes` once `delay` has passed and everything left here before has been sent. Returns at once.
  void later(duration delay, std::string bytes);
  /// Sends `step` bytes at a time.
  bool drip(std::string_view bytes, std::size_t step, duration every);
  /// False when the server is being stopped.
  bool wait(duration time);
  /// Reads nothing and says nothing until the client has closed (true) or the server is being stopped
  /// (false).
  bool wait_closed();
  /// The same until `opened` is true (true); false when the connection ended or the server is being stopped.
  bool wait_for(std::atomic<bool> const& opened);

  /// Ends the connection in the ordinary way, behind what was sent.
  void close();
  /// Ends it with a reset.
  void reset();

  /// How many connections were accepted before this one.
  [[nodiscard]] std::size_t number() const noexcept { return number_; }

 private:
  friend class scripted_server;
  peer(class scripted_server& server, int fd, std::size_t number)
      : server_(server),
        fd_(fd),
        number_(number) {}
  bool poll(short events, std::optional<clock::time_point> until);
  bool send_due();
  std::optional<words> take_command();

  class scripted_server& server_;
  int fd_;  // -1 when closed; changed under the server's mutex
  std::size_t number_;
  std::string buffer_;
  std::size_t used_ = 0;
  std::deque<std::pair<clock::time_point, std::string>> due_;
  std::atomic<bool> reset_at_end_ = false;
};

/// Where to listen.
struct scripted_options {
  enum class family { ipv4, ipv6, unix_socket } where = family::ipv4;
  /// Begin without listening: connecting is refused until `listen()`.
  bool refusing = false;
  /// Accept nothing, and let nothing in: the queue of waiting connections has length 0 and is full.
  bool backlog_full = false;
  /// Of the loopback address; 0: any that is free.
  std::uint16_t port = 0;
};

/// See the head of this file. The destructor ends every script and joins its thread. Thread-safe.
class scripted_server {
 public:
  using script = std::function<void(peer&)>;

  explicit scripted_server(script behaviour, scripted_options options = {});
  ~scripted_server();
  scripted_server(scripted_server const&) = delete;
  scripted_server& operator=(scripted_server const&) = delete;

  /// On the loopback address; the same when it listens again. 0 for a unix socket.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Of a unix socket.
  [[nodiscard]] std::string const& path() const noexcept { return path_; }

  /// Refuses new connections; those that exist live on.
  void refuse();
  /// Listens again.
  void listen();
  /// Begins to accept after `backlog_full`.
  void drain_backlog();
  /// Resets all connections.
  void reset_all();

  /// Connections accepted so far.
  [[nodiscard]] std::size_t accepted() const noexcept { return accepted_; }
  /// Connections whose script has not ended.
  [[nodiscard]] std::size_t open() const noexcept { return open_; }
  /// Every command read so far, handshakes included, in the order in which they were read.
  [[nodiscard]] std::vector<words> log() const;
  /// How many of them begin with these words.
  template <class... Words>
  [[nodiscard]] std::size_t count(Words const&... begin) const {
    std::size_t n = 0;
    for (auto const& command : log()) n += is(command, begin...) ? 1 : 0;
    return n;
  }

  /// Answers every command as `answer_of` says, at once.
  static script plain();
  /// PING, ECHO, CLIENT, AUTH, SELECT; SET says OK; GET answers "value of KEY", so that a reply that went
  /// astray shows; INCR counts, over all keys and connections together. Everything else is an unknown
  /// command.
  [[nodiscard]] std::string answer_of(words const& command);
  /// What INCR has counted.
  [[nodiscard]] long long counter() const noexcept { return counter_; }

 private:
  friend class peer;
  struct served {
    std::unique_ptr<peer> connection;
    std::thread thread;
    std::atomic<bool> done = false;
  };
  void bind_socket();
  void accept_all();
  void serve(int fd);
  void reap(bool all);
  void forget(peer& connection, bool with_reset);
  void wake_acceptor() const;

  script behaviour_;
  scripted_options options_;
  int listener_ = -1;  // changed by the acceptor's thread only, once that runs
  int filler_ = -1;
  int stop_ = -1;    // an eventfd that becomes readable for ever
  int change_ = -1;  // an eventfd that makes the acceptor look again
  std::uint16_t port_ = 0;
  std::string path_;
  std::atomic<bool> listening_ = false;
  std::atomic<bool> accepting_ = false;
  std::atomic<bool> applied_ = true;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::size_t> accepted_ = 0;
  std::atomic<std::size_t> open_ = 0;
  std::atomic<long long> counter_ = 0;
  mutable std::mutex mutex_;
  std::vector<words> log_;
  std::list<served> connections_;
  std::thread acceptor_;
};

}  // namespace redoubt::test_support
