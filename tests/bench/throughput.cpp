// SPDX-License-Identifier: BSL-1.0
//
// Calls over one connection: this library next to hiredis, on a redis-server of its own.
// Clients take turns in every round, so that what else the machine does meets them alike. Every reply is
// checked.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "command_line.hpp"
#include "real_redis.hpp"
#include "throughput/allocations.hpp"
#include "throughput/machine.hpp"
#include "throughput/peer.hpp"
#include "throughput/report.hpp"

namespace {

constexpr std::string_view usage = R"(Usage: redoubt_throughput [OPTION]...

Measures this library and others in turns, against a redis-server that it starts itself.

  --seconds S        time for each client in each cell and round (default 0.1)
  --rounds N         rounds; the medians over them are shown (default 15)
  --in-flight LIST   calls under way at a time (default 1,8,64,512)
  --loads LIST       get, set: 100 bytes (default both); get-10k, set-10k, get-1m, set-1m: larger values;
                     list-1000: LRANGE of 1000 elements; batch-100: 100 GETs sent together
  --clients LIST     names as in the table (default all)
  --peers WHICH      hiredis and redis-benchmark (default), or all: Boost.Redis and redis-plus-plus too, if found
  --pin WHERE        two: the server on one CPU, the clients on another (default); one: all on one; none: anywhere
  --json FILE        writes the numbers, those of every round included
  -h, --help         this text

Status: 0 when every reply was right, 1 when one was not, 2 when it could not run.
)";

struct settings {
  double seconds = 0.1;
  int rounds = 15;
  std::vector<std::size_t> in_flight = {1, 8, 64, 512};
  std::vector<bench::load const*> loads = {&bench::loads[0], &bench::loads[1]};
  std::vector<std::string> clients;
  bool all_peers = false;
  bench::placement pin = bench::placement::two_cpus;
  std::string json;
};

settings parse(bench::command_line const& words) {
  settings out;
  for (auto const& [option, text] : words) {
    if (option == "--seconds") {
      out.seconds = bench::number(text, option, 0.001, 60);
    } else if (option == "--rounds") {
      out.rounds = static_cast<int>(bench::number(text, option, 1, 1000));
    } else if (option == "--in-flight") {
      out.in_flight.clear();
      for (auto const& one : bench::split(text))
        out.in_flight.push_back(static_cast<std::size_t>(bench::number(one, option, 1, 1000)));
    } else if (option == "--loads") {
      out.loads.clear();
      for (auto const& one : bench::split(text)) {
        auto const found = std::find_if(bench::loads.begin(), bench::loads.end(),
                                        [&](bench::load const& known) { return known.name == one; });
        if (found == bench::loads.end()) throw std::invalid_argument("no such load: " + one);
        out.loads.push_back(&*found);
      }
    } else if (option == "--peers") {
      if (text != "all" && text != "hiredis") throw std::invalid_argument("--peers takes hiredis or all");
      out.all_peers = text == "all";
    } else if (option == "--clients") {
      out.clients = bench::split(text);
    } else if (option == "--pin") {
      out.pin = bench::placement_named(text);
    } else if (option == "--json") {
      out.json = text;
    } else {
      throw std::invalid_argument("unknown option: " + option);
    }
  }
  return out;
}

bench::peer_list peers_for(settings const& chosen, int port) {
  bench::peer_list all;
  bench::add_redoubt(all, port);
  bench::add_hiredis(all, port);
  bench::add_hiredis_async(all, port);
  if (chosen.all_peers) {
    if (!bench::add_boost_redis(all, port)) fmt::print("skipped: Boost.Redis, its headers were not found\n");
    if (!bench::add_redis_plus_plus(all, port)) fmt::print("skipped: redis-plus-plus, it was not found\n");
  }
  bench::add_redis_benchmark(all, port);
  bench::add_threads(all, port);
  if (chosen.clients.empty()) return all;
  bench::peer_list out;
  for (auto const& name : chosen.clients) {
    auto const found =
        std::find_if(all.begin(), all.end(), [&](auto const& one) { return one && one->name() == name; });
    if (found == all.end()) throw std::invalid_argument("no such client in this build: " + name);
    out.push_back(std::move(*found));
  }
  return out;
}

/// All clients in one cell, each round beginning with another one.
void measure(bench::report& into, bench::peer_list& peers, bench::cell const& what, double seconds,
             std::size_t round) {
  for (std::size_t i = 0; i < peers.size(); ++i) {
    auto& one = *peers[(i + round) % peers.size()];
    if (one.takes(what)) into.at(what, one.name()).add(one.run(what, seconds));
  }
}

bench::report run(settings const& chosen) {
  redoubt::test_support::real_redis server;
  bench::report out;
  out.machine = bench::machine_facts();  // before pinning: it counts the processors we may use
  auto const placed = bench::place(chosen.pin, server.pid());
  for (auto const* one : chosen.loads) bench::fill(*one, server.port());
  out.versions = bench::version_facts(server.port());
  out.settings = {{"placement", placed},
                  {"time", fmt::format("{} s for each client and cell, {} rounds, medians", chosen.seconds,
                                       chosen.rounds)}};
  auto peers = peers_for(chosen, server.port());
  for (auto const& one : peers) out.settings.emplace_back(one->name(), one->about());

  std::vector<bench::cell> cells;
  for (auto const* of : chosen.loads) {
    for (auto const n : chosen.in_flight) cells.push_back({of, n});
  }
  for (auto const& what : cells) {
    for (auto const& one : peers) {
      if (!one->takes(what)) continue;
      (void)out.at(what, one->name());                       // the table's order
      (void)one->run(what, std::min(0.05, chosen.seconds));  // warm-up
    }
  }
  for (int round = 0; round < chosen.rounds; ++round) {
    for (auto const& what : cells) measure(out, peers, what, chosen.seconds, static_cast<std::size_t>(round));
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::program("redoubt_throughput", usage, argc, argv, [](bench::command_line const& words) {
    auto const chosen = parse(words);
    auto const measured = run(chosen);
    fmt::print("{}\n{}", measured.head(), measured.table());
    if (!bench::counts_allocations()) fmt::print("\nAllocations are not counted in this build.\n");
    bench::write_file(chosen.json, measured.json());
    std::uint64_t wrong = 0;
    std::uint64_t answers = 0;
    for (auto const& one : measured.lines) wrong += one.wrong, answers += one.answers;
    fmt::print("\n{} replies, {} wrong\n", answers, wrong);
    return wrong == 0 && answers > 0 ? 0 : 1;
  });
}
