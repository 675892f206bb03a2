// SPDX-License-Identifier: BSL-1.0
#include "machine.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <boost/asio/version.hpp>
#include <boost/version.hpp>
#include <fmt/format.h>
#include <hiredis/hiredis.h>

#if defined(REDOUBT_BENCH_LIBUV)
#include <uv.h>
#endif

namespace bench {
namespace {

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string build() {
#if defined(__OPTIMIZE__)
  return compiler() + ", optimised";
#else
  return compiler() + ", NOT optimised: the numbers mean nothing";
#endif
}

std::string server_version(int port) {
  std::unique_ptr<redisContext, decltype(&redisFree)> const c(redisConnect("127.0.0.1", port), &redisFree);
  std::unique_ptr<redisReply, decltype(&freeReplyObject)> const r(
      static_cast<redisReply*>(redisCommand(c.get(), "INFO server")), &freeReplyObject);
  if (!r || r->type != REDIS_REPLY_STRING) return "unknown";
  std::string_view const text(r->str, r->len);
  constexpr std::string_view name = "redis_version:";
  auto const at = text.find(name);
  if (at == std::string_view::npos) return "unknown";
  auto const rest = text.substr(at + name.size());
  return std::string(rest.substr(0, rest.find('\r')));
}

std::vector<std::size_t> usable_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ::sched_getaffinity(0, sizeof mask, &mask);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &mask)) out.push_back(i);
  }
  return out;
}

void pin(pid_t thread, std::size_t cpu) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(cpu, &mask);
  if (::sched_setaffinity(thread, sizeof mask, &mask) != 0) {
    throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
  }
}

}  // namespace

facts machine_facts() {
  utsname system{};
  ::uname(&system);
  auto const pages =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return {{"processor", processor()},
          {"processors", std::to_string(usable_cpus().size())},
          {"memory", fmt::format("{:.1f} GB", pages / 1e9)},
          {"system", fmt::format("{} {}", system.sysname, system.release)}};
}

facts version_facts(int port) {
  facts out = {{"redis-server", server_version(port)},
               {"hiredis", fmt::format("{}.{}.{}", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH)}};
#if defined(REDOUBT_BENCH_LIBUV)
  out.emplace_back("libuv", uv_version_string());
#endif
  out.emplace_back("Boost", fmt::format("{}.{}.{}", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000,
                                        BOOST_VERSION % 100));
  out.emplace_back("redoubt", REDOUBT_BENCH_VERSION);
  out.emplace_back("compiler", build());
  return out;
}

std::string place(placement where, pid_t server) {
  if (where == placement::unpinned) return "not pinned";
  auto const cpus = usable_cpus();
  bool const two = where == placement::two_cpus && cpus.size() > 1;
  auto const server_cpu = two ? cpus[0] : cpus.back();
  auto const own_cpu = cpus.back();
  for (auto const& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", server))) {
    pin(static_cast<pid_t>(std::stol(thread.path().filename().string())), server_cpu);
  }
  pin(0, own_cpu);
  return two ? fmt::format("server on CPU {}, clients on CPU {}", server_cpu, own_cpu)
             : fmt::format("server and clients on CPU {}", own_cpu);
}

}  // namespace bench
