// SPDX-License-Identifier: BSL-1.0
#include "scripted_server.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace redoubt::test_support {
namespace {

[[noreturn]] void broken(char const* what) { throw std::system_error(errno, std::generic_category(), what); }

int domain_of(scripted_options::family where) {
  switch (where) {
    case scripted_options::family::ipv4: return AF_INET;
    case scripted_options::family::ipv6: return AF_INET6;
    case scripted_options::family::unix_socket: return AF_UNIX;
  }
  return AF_INET;
}

struct place {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] sockaddr* generic() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
};

place place_of(scripted_options::family where, std::uint16_t port, std::string const& path) {
  place out;
  switch (where) {
    case scripted_options::family::ipv4: {
      auto& in = reinterpret_cast<sockaddr_in&>(out.storage);
      in.sin_family = AF_INET;
      in.sin_port = htons(port);
      in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      out.size = sizeof in;
      break;
    }
    case scripted_options::family::ipv6: {
      auto& in = reinterpret_cast<sockaddr_in6&>(out.storage);
      in.sin6_family = AF_INET6;
      in.sin6_port = htons(port);
      in.sin6_addr = in6addr_loopback;
      out.size = sizeof in;
      break;
    }
    case scripted_options::family::unix_socket: {
      auto& local = reinterpret_cast<sockaddr_un&>(out.storage);
      local.sun_family = AF_UNIX;
      std::memcpy(local.sun_path, path.c_str(), path.size() + 1);
      out.size = sizeof local;
      break;
    }
  }
  return out;
}

std::uint16_t port_of(int fd) {
  place where;
  where.size = sizeof where.storage;
  if (::getsockname(fd, where.generic(), &where.size) != 0) broken("getsockname");
  if (where.storage.ss_family == AF_INET)
    return ntohs(reinterpret_cast<sockaddr_in&>(where.storage).sin_port);
  if (where.storage.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<sockaddr_in6&>(where.storage).sin6_port);
  return 0;
}

void raise(int event) {
  std::uint64_t const one = 1;
  [[maybe_unused]] auto const written = ::write(event, &one, sizeof one);
}

}  // namespace

scripted_server::scripted_server(script behaviour, scripted_options options)
    : behaviour_(std::move(behaviour)),
      options_(options) {
  stop_ = ::eventfd(0, EFD_CLOEXEC);
  change_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop_ < 0 || change_ < 0) broken("eventfd");
  if (options_.where == scripted_options::family::unix_socket) {
    auto pattern = (std::filesystem::temp_directory_path() / "redoubt-net-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) broken("mkdtemp");
    path_ = pattern + "/socket";
  }
  port_ = options_.port;
  bind_socket();
  listening_ = !options_.refusing;
  accepting_ = !options_.backlog_full;
  if (options_.backlog_full) {
    // A queue of length 0 holds one connection on Linux.
    filler_ = ::socket(domain_of(options_.where), SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto where = place_of(options_.where, port_, path_);
    if (filler_ < 0 || ::connect(filler_, where.generic(), where.size) != 0) broken("connect");
  }
  if (options_.refusing) {
    // The port is ours now; closing gives it back, and connecting to it is refused.
    ::close(std::exchange(listener_, -1));
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  acceptor_ = std::thread([this] { accept_all(); });
}

scripted_server::~scripted_server() {
  stopping_ = true;
  raise(stop_);
  acceptor_.join();
  reap(true);
  for (int const fd : {listener_, filler_, stop_, change_}) {
    if (fd >= 0) ::close(fd);
  }
  if (!path_.empty()) std::filesystem::remove_all(std::filesystem::path(path_).parent_path());
}

void scripted_server::bind_socket() {
  listener_ = ::socket(domain_of(options_.where), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0) broken("socket");
  int const yes = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (!path_.empty()) ::unlink(path_.c_str());
  auto where = place_of(options_.where, port_, path_);
  if (::bind(listener_, where.generic(), where.size) != 0) broken("bind");
  if (::listen(listener_, options_.backlog_full ? 0 : 1024) != 0) broken("listen");
  if (path_.empty()) port_ = port_of(listener_);
}

void scripted_server::wake_acceptor() const { raise(change_); }

// The acceptor's thread follows the flags; these wait until it has.
void scripted_server::refuse() {
  applied_ = false;
  listening_ = false;
  wake_acceptor();
  while (!applied_) std::this_thread::yield();
}

void scripted_server::listen() {
  applied_ = false;
  listening_ = true;
  wake_acceptor();
  while (!applied_) std::this_thread::yield();
}

void scripted_server::drain_backlog() {
  ::close(std::exchange(filler_, -1));
  accepting_ = true;
  wake_acceptor();
}

void scripted_server::reset_all() {
  std::lock_guard const lock(mutex_);
  for (auto& one : connections_) {
    if (one.connection->fd_ < 0) continue;
    one.connection->reset_at_end_ = true;
    ::shutdown(one.connection->fd_, SHUT_RD);  // ends the script's wait
  }
}

std::vector<words> scripted_server::log() const {
  std::lock_guard const lock(mutex_);
  return log_;
}

void scripted_server::accept_all() {
  while (!stopping_) {
    if (listening_ && listener_ < 0) {
      bind_socket();
    } else if (!listening_ && listener_ >= 0) {
      ::close(std::exchange(listener_, -1));
      if (!path_.empty()) ::unlink(path_.c_str());
    }
    applied_ = true;
    pollfd watched[] = {{accepting_ ? listener_ : -1, POLLIN, 0}, {stop_, POLLIN, 0}, {change_, POLLIN, 0}};
    ::poll(watched, 3, -1);
    if (watched[2].revents != 0) {
      std::uint64_t sum = 0;
      [[maybe_unused]] auto const n = ::read(change_, &sum, sizeof sum);
    }
    if (watched[0].revents == 0) continue;
    int const fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) serve(fd);
    reap(false);
  }
}

void scripted_server::serve(int fd) {
  if (path_.empty()) {
    int const yes = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  std::lock_guard const lock(mutex_);
  auto& one = connections_.emplace_back();
  one.connection.reset(new peer(*this, fd, accepted_++));
  ++open_;
  one.thread = std::thread([this, &one] {
    behaviour_(*one.connection);
    forget(*one.connection, one.connection->reset_at_end_);
    --open_;
    one.done = true;
  });
}

void scripted_server::forget(peer& connection, bool with_reset) {
  std::lock_guard const lock(mutex_);
  int const fd = std::exchange(connection.fd_, -1);
  if (fd < 0) return;
  if (with_reset) {
    linger const at_once{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  ::close(fd);
}

void scripted_server::reap(bool all) {
  std::list<served> ended;
  {
    std::lock_guard const lock(mutex_);
    for (auto one = connections_.begin(); one != connections_.end();) {
      auto const next = std::next(one);
      if (all || one->done) ended.splice(ended.end(), connections_, one);
      one = next;
    }
  }
  for (auto& one : ended) one.thread.join();
}

scripted_server::script scripted_server::plain() {
  return [](peer& p) {
    while (auto const command = p.read()) {
      if (!p.answer(*command)) return;
    }
  };
}

std::string scripted_server::answer_of(words const& command) {
  if (is(command, "PING")) return std::string(pong);
  if (is(command, "CLIENT") || is(command, "AUTH") || is(command, "SELECT") || is(command, "SET"))
    return std::string(ok);
  if (is(command, "ECHO") && command.size() == 2) return bulk(command[1]);
  if (is(command, "GET") && command.size() == 2) return bulk("value of " + command[1]);
  if (is(command, "INCR")) return integer(++counter_);
  return "-ERR unknown command\r\n";
}

}  // namespace redoubt::test_support
