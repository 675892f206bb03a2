// SPDX-License-Identifier: BSL-1.0
#include "outage/redis_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace outage {
namespace {

std::string find_program(std::string const& name) {
  char const* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string const candidate = folder + "/" + name;
    if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  throw no_redis_server();
}

bool is_free(std::uint16_t port) {
  int const fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bool const ok = ::bind(fd, reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0;
  ::close(fd);
  return ok;
}

/// Not from the range that the system takes the ports of outgoing connections from: nobody must be given the
/// port while its server is down.
std::uint16_t free_port() {
  static std::set<std::uint16_t> given;  // some of them are not in use yet
  std::random_device random;
  for (int tries = 0; tries < 1000; ++tries) {
    auto const port = static_cast<std::uint16_t>(20'000 + random() % 12'000);
    if (is_free(port) && given.insert(port).second) return port;
  }
  throw std::runtime_error("there is no free port between 20000 and 32000");
}

/// The child's way from fork to exec; only what is safe there.
[[noreturn]] void become(char* const* words, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);       // dies with this program, however that ends
  if (::getppid() != parent) ::_exit(126);  // which has ended already
  ::setpgid(0, 0);                          // Ctrl-C is for this program alone; it ends the servers itself
  int const nothing = ::open("/dev/null", O_RDWR);
  for (int fd : {0, 1, 2}) ::dup2(nothing, fd);
  ::close_range(3, ~0U, 0);  // connections of ours must not stay open in a server
  ::execv(words[0], words);
  ::_exit(127);
}

}  // namespace

no_redis_server::no_redis_server()
    : std::runtime_error(
          "redis-server was not found. Install it with `apt-get install redis-server` (Debian, Ubuntu), "
          "or put the folder that holds it into PATH") {}

redis_server::redis_server(std::string name, std::filesystem::path folder, std::vector<std::string> options)
    : name_(std::move(name)),
      folder_(std::move(folder)),
      options_(std::move(options)),
      program_(find_program("redis-server")),
      port_(free_port()) {}

redis_server::~redis_server() { kill(); }

void redis_server::start() {
  std::string const log_file = (folder_ / (name_ + ".log")).string();
  std::ofstream(log_file, std::ios::trunc).flush();
  std::vector<std::string> words = {program_, "--port", std::to_string(port_), "--bind", "127.0.0.1"};
  for (auto const* word : {"--save", "", "--appendonly", "no", "--daemonize", "no"}) words.emplace_back(word);
  words.insert(words.end(), {"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"});
  words.insert(words.end(),
               {"--dir", folder_.string(), "--dbfilename", name_ + ".rdb", "--logfile", log_file});
  words.insert(words.end(), options_.begin(), options_.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  pid_t const parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) become(argv.data(), parent);
}

bool redis_server::ready() {
  // Its log, not its port: whatever answers there could be somebody else's.
  if (log().find("Ready to accept connections") != std::string::npos) return true;
  if (::waitpid(pid_, nullptr, WNOHANG) != pid_) return false;
  pid_ = -1;
  throw std::runtime_error("redis-server (" + name_ + ") did not start; its log says:\n" + log());
}

void redis_server::pause() {
  signal(SIGSTOP);
  int status = 0;
  while (::waitpid(pid_, &status, WUNTRACED) < 0 && errno == EINTR) {
  }
  if (WIFSTOPPED(status)) return;
  pid_ = -1;
  throw std::runtime_error("redis-server (" + name_ + ") has ended unexpectedly");
}

void redis_server::resume() { signal(SIGCONT); }

void redis_server::kill() noexcept {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void redis_server::signal(int number) {
  if (pid_ <= 0 || ::kill(pid_, number) != 0) {
    throw std::runtime_error("redis-server (" + name_ + ") is not running");
  }
}

std::string redis_server::log() const {
  std::ifstream in(folder_ / (name_ + ".log"));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace outage
