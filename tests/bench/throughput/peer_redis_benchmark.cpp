// SPDX-License-Identifier: BSL-1.0
//
// redis-benchmark, where it is installed: what the server gives a client that does next to nothing. It
// compares no reply.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "peer.hpp"

extern char** environ;

namespace bench {
namespace {

constexpr char program[] = "redis-benchmark";

/// Runs a program, gives what it wrote to its standard output and the processor time that it took.
std::string output_of(std::vector<std::string> words, double& cpu) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  int const error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string out;
  if (error == 0) {
    char piece[4096];
    for (ssize_t n = 0; (n = ::read(ends[0], piece, sizeof piece)) > 0;) {
      out.append(piece, static_cast<std::size_t>(n));
    }
  }
  ::close(ends[0]);
  int status = -1;
  rusage used{};
  if (error == 0) ::wait4(child, &status, 0, &used);
  if (status != 0) throw std::runtime_error(fmt::format("{} did not run: {}", program, out));
  auto const us = [](timeval const& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  cpu = us(used.ru_utime) + us(used.ru_stime);
  return out;
}

class redis_benchmark final : public peer {
 public:
  explicit redis_benchmark(int port) : port_(port) {}
  [[nodiscard]] std::string_view name() const override { return program; }
  [[nodiscard]] std::string_view about() const override {
    return "-c 1 -P with as many commands as are in flight; one key; compares no reply";
  }
  [[nodiscard]] bool takes(cell const& what) const override {
    return what.in_flight > 1 && what.of->bytes == 100 &&
           (what.of->what == shape::get || what.of->what == shape::set);
  }

  sample run(cell const& what, double seconds) override {
    auto const requests = std::max(1000.0, rate_ * seconds);
    std::vector<std::string> words = {program,
                                      "-h",
                                      "127.0.0.1",
                                      "-p",
                                      std::to_string(port_),
                                      "-c",
                                      "1",
                                      "-P",
                                      std::to_string(what.in_flight),
                                      "-n",
                                      fmt::format("{:.0f}", requests),
                                      "--csv"};
    if (what.of->what == shape::get) {
      words.insert(words.end(), {"GET", contents_of(*what.of).keys[0]});
    } else {  // a key of its own
      words.insert(words.end(), {"-t", "set", "-d", std::to_string(what.of->bytes)});
    }
    sample out;
    auto const text = output_of(words, out.cpu_us);
    // "name","requests per second",..., in the last line
    auto const line = text.rfind('"' + std::string(what.of->what == shape::get ? "GET" : "SET"));
    auto const name_end = line == std::string::npos ? line : text.find("\",\"", line);
    if (name_end == std::string::npos) throw std::runtime_error(fmt::format("{} said: {}", program, text));
    rate_ = std::max(1.0, std::strtod(text.c_str() + name_end + 3, nullptr));
    out.answers = static_cast<std::uint64_t>(requests);
    out.seconds = requests / rate_;
    return out;
  }

 private:
  int port_;
  double rate_ = 100'000;
};

}  // namespace

void add_redis_benchmark(peer_list& peers, int port) {
  double cpu = 0;
  try {
    (void)output_of({program, "--version"}, cpu);
  } catch (std::runtime_error const&) {
    return;  // not installed
  }
  peers.push_back(std::make_unique<redis_benchmark>(port));
}

}  // namespace bench
