// SPDX-License-Identifier: BSL-1.0
#include "raw_redis.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

namespace redoubt::test_support {
namespace {

[[noreturn]] void fail(char const* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

std::string encode(std::vector<std::string> const& words) {
  auto out = "*" + std::to_string(words.size()) + "\r\n";
  for (auto const& word : words) out += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return out;
}

std::size_t reply_length(std::string_view bytes) {
  auto const line_end = bytes.find("\r\n");
  if (line_end == std::string_view::npos) return 0;
  auto const header = line_end + 2;
  if (bytes[0] != '$' && bytes[0] != '*') return header;
  long long count = 0;
  std::from_chars(bytes.data() + 1, bytes.data() + line_end, count);
  if (count < 0) return header;
  if (bytes[0] == '$') {
    auto const whole = header + static_cast<std::size_t>(count) + 2;
    return bytes.size() >= whole ? whole : 0;
  }
  auto total = header;
  for (; count > 0; --count) {
    auto const element = reply_length(bytes.substr(total));
    if (element == 0) return 0;
    total += element;
  }
  return total;
}

raw_redis::raw_redis(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    close();
    fail("connect");
  }
  int const on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

raw_redis::raw_redis(std::string const& socket_path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) fail("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    close();
    fail("connect");
  }
}

raw_redis::~raw_redis() { close(); }

void raw_redis::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool raw_redis::send(std::string_view bytes) {
  while (!bytes.empty()) {
    auto const n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool raw_redis::receive(std::chrono::steady_clock::time_point until) {
  if (closed_) return false;
  auto const left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  pollfd wait{fd_, POLLIN, 0};
  if (::poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) <= 0) return false;
  char block[16384];
  auto const n = ::recv(fd_, block, sizeof block, 0);
  if (n <= 0) {
    closed_ = true;
    return false;
  }
  buffer_.append(block, static_cast<std::size_t>(n));
  return true;
}

std::optional<std::string> raw_redis::read(std::chrono::milliseconds limit) {
  auto const until = std::chrono::steady_clock::now() + limit;
  for (;;) {
    if (auto const length = reply_length(buffer_); length != 0) {
      auto out = buffer_.substr(0, length);
      buffer_.erase(0, length);
      return out;
    }
    if (!receive(until)) return std::nullopt;
  }
}

std::string raw_redis::call(std::vector<std::string> const& words, std::chrono::milliseconds limit) {
  send(encode(words));
  if (auto reply = read(limit)) return *std::move(reply);
  return closed_ ? "<closed>" : "<nothing>";
}

bool raw_redis::wait_closed(std::chrono::milliseconds limit) {
  auto const until = std::chrono::steady_clock::now() + limit;
  while (receive(until)) {
  }
  return closed_;
}

}  // namespace redoubt::test_support
