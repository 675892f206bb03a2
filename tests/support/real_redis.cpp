// SPDX-License-Identifier: BSL-1.0
#include "real_redis.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#ifndef REDOUBT_REDIS_SERVER
#define REDOUBT_REDIS_SERVER "redis-server"
#endif

namespace redoubt::test_support {
namespace {

using namespace std::chrono_literals;

std::filesystem::path temporary_folder() {
  auto pattern = (std::filesystem::temp_directory_path() / "redoubt-redis-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "no temporary folder");
  }
  return pattern;
}

// Between fork and exec only what is safe in a program with threads.
[[noreturn]] void become_server(std::vector<char*> const& argv, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  int const null = ::open("/dev/null", O_RDWR);
  ::dup2(null, 0);
  ::dup2(null, 1);
  ::dup2(null, 2);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

int free_port() {
  int const fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  bool const ok = fd >= 0 && ::bind(fd, generic, size) == 0 && ::getsockname(fd, generic, &size) == 0;
  if (fd >= 0) ::close(fd);
  if (!ok) throw std::system_error(errno, std::generic_category(), "no free port");
  return ntohs(address.sin_port);
}

real_redis::real_redis(std::vector<std::string> arguments)
    : arguments_(std::move(arguments)),
      dir_(temporary_folder()) {
  try {
    start();
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
    throw;
  }
}

real_redis::~real_redis() {
  kill();
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

std::string real_redis::log() const {
  std::ifstream in(dir_ / "log");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool real_redis::available() {
  std::string const name = REDOUBT_REDIS_SERVER;
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0;
  char const* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

void real_redis::start() {
  if (pid_ > 0) return;
  bool const first = port_ == 0;
  // Between finding a free port and the server's bind somebody else may take it: try others, but keep the
  // port of a server that has run already.
  for (int tries = 0; tries < 10; ++tries) {
    if (first) port_ = free_port();
    if (start_once()) return;
  }
  throw std::runtime_error("redis-server did not start: " + log());
}

bool real_redis::start_once() {
  std::vector<std::string> words = {REDOUBT_REDIS_SERVER,
                                    "--port",
                                    std::to_string(port_),
                                    "--bind",
                                    "127.0.0.1",
                                    "--unixsocket",
                                    socket_path(),
                                    "--dir",
                                    dir_.string(),
                                    "--logfile",
                                    (dir_ / "log").string(),
                                    "--daemonize",
                                    "no",
                                    "--save",
                                    "",
                                    "--appendonly",
                                    "no",
                                    "--enable-debug-command",
                                    "yes"};
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  std::ofstream(dir_ / "log", std::ios::trunc).flush();
  auto const parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) become_server(argv, parent);

  for (auto const until = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < until;) {
    // The log rather than the port: it cannot be somebody else's server.
    if (log().find("Ready to accept connections") != std::string::npos) return true;
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return false;
    }
    std::this_thread::sleep_for(2ms);
  }
  kill();
  return false;
}

void real_redis::stop() { signal_and_wait(SIGTERM); }
void real_redis::kill() { signal_and_wait(SIGKILL); }

void real_redis::pause() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGSTOP);
  // SIGSTOP takes effect some time after kill() returns; a test wants to rely on the silence.
  int status = 0;
  if (::waitpid(pid_, &status, WUNTRACED) == pid_ && !WIFSTOPPED(status)) pid_ = -1;  // it had ended before
}

void real_redis::resume() {
  if (pid_ > 0) ::kill(pid_, SIGCONT);
}

void real_redis::signal_and_wait(int signal) {
  if (pid_ <= 0) return;
  ::kill(pid_, signal);
  ::kill(pid_, SIGCONT);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace redoubt::test_support
