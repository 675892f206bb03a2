// SPDX-License-Identifier: BSL-1.0
//
// One connection of a scripted server.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "scripted_server.hpp"

namespace redoubt::test_support {
namespace {

/// The length that stands between `at` + 1 and the end of the line; moves `at` behind the line. False when
/// incomplete.
bool header(std::string_view bytes, std::size_t& at, char type, std::size_t& length) {
  auto const end = bytes.find("\r\n", at);
  if (end == std::string_view::npos || bytes[at] != type) return false;
  std::from_chars(bytes.data() + at + 1, bytes.data() + end, length);
  at = end + 2;
  return true;
}

}  // namespace

std::string bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

std::string integer(long long n) { return ":" + std::to_string(n) + "\r\n"; }

/// True when one of `events` is there; false when the time or the server has ended. A hang-up counts as an
/// event.
bool peer::poll(short events, std::optional<clock::time_point> until) {
  for (;;) {
    pollfd watched[] = {{fd_, events, 0}, {server_.stop_, POLLIN, 0}};
    int timeout = -1;
    if (until) {
      auto const left = std::chrono::ceil<std::chrono::milliseconds>(*until - clock::now()).count();
      timeout = static_cast<int>(std::max<decltype(left)>(left, 0));
    }
    int const n = ::poll(watched, 2, timeout);
    if (n < 0 && errno == EINTR) continue;
    if (server_.stopping_) return false;
    return n > 0 && watched[0].revents != 0;
  }
}

std::optional<words> peer::take_command() {
  auto const rest = std::string_view(buffer_).substr(used_);
  std::size_t at = 0;
  std::size_t count = 0;
  if (!header(rest, at, '*', count)) return std::nullopt;
  words out;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t length = 0;
    if (!header(rest, at, '$', length) || rest.size() < at + length + 2) return std::nullopt;
    out.emplace_back(rest.substr(at, length));
    at += length + 2;
  }
  used_ += at;
  if (used_ == buffer_.size()) {
    buffer_.clear();
    used_ = 0;
  }
  return out;
}

std::optional<words> peer::read() {
  for (;;) {
    if (fd_ < 0 || server_.stopping_ || !send_due()) return std::nullopt;
    if (auto command = take_command()) {
      std::lock_guard const lock(server_.mutex_);
      server_.log_.push_back(*command);
      return command;
    }
    std::optional<clock::time_point> until;
    if (!due_.empty()) until = due_.front().first;
    if (!poll(POLLIN, until)) continue;
    buffer_.erase(0, std::exchange(used_, 0));
    auto const before = buffer_.size();
    buffer_.resize(before + 64 * 1024);
    auto const n = ::recv(fd_, buffer_.data() + before, 64 * 1024, 0);
    buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return std::nullopt;
  }
}

bool peer::send_due() {
  while (!due_.empty() && due_.front().first <= clock::now()) {
    auto const bytes = std::move(due_.front().second);
    due_.pop_front();
    if (!send(bytes)) return false;
  }
  return true;
}

bool peer::greet() {
  for (;;) {
    auto const command = read();
    if (!command || !answer(*command)) return false;
    if (is(*command, "PING")) return true;
  }
}

bool peer::answer(words const& command) { return send(server_.answer_of(command)); }

bool peer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (fd_ < 0) return false;
    auto const n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      if (!poll(POLLOUT, std::nullopt)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void peer::later(duration delay, std::string bytes) {
  auto const at = clock::now() + delay;
  due_.emplace_back(due_.empty() ? at : std::max(at, due_.back().first), std::move(bytes));
}

bool peer::drip(std::string_view bytes, std::size_t step, duration every) {
  while (!bytes.empty()) {
    if (!send(bytes.substr(0, step))) return false;
    bytes.remove_prefix(std::min(step, bytes.size()));
    if (!bytes.empty() && !wait(every)) return false;
  }
  return true;
}

bool peer::wait(duration time) {
  auto const until = clock::now() + time;
  timespec const left{static_cast<time_t>(time / std::chrono::seconds(1)),
                      static_cast<long>((time % std::chrono::seconds(1)).count())};
  pollfd stop{server_.stop_, POLLIN, 0};
  while (clock::now() < until && !server_.stopping_) ::ppoll(&stop, 1, &left, nullptr);
  return !server_.stopping_;
}

bool peer::wait_closed() {
  while (!server_.stopping_) {
    if (poll(POLLRDHUP, std::nullopt)) return true;
  }
  return false;
}

bool peer::wait_for(std::atomic<bool> const& opened) {
  while (!opened) {
    if (server_.stopping_ || poll(POLLRDHUP, clock::now() + std::chrono::milliseconds(1))) return false;
  }
  return true;
}

void peer::close() { server_.forget(*this, false); }
void peer::reset() { server_.forget(*this, true); }

}  // namespace redoubt::test_support
