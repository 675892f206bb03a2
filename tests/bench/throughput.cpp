// SPDX-License-Identifier: BSL-1.0
//
// GET and SET of 100 bytes over one connection: this library next to hiredis, on a redis-server of its own.
// Clients take turns in every round, so that what else the machine does meets them alike. Every reply is
// checked.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "real_redis.hpp"
#include "throughput/allocations.hpp"
#include "throughput/machine.hpp"
#include "throughput/peer.hpp"
#include "throughput/report.hpp"

namespace {

constexpr std::string_view usage = R"(Usage: redoubt_throughput [OPTION]...

Measures GET and SET of 100 bytes with this library and with hiredis, against a redis-server that it starts itself.

  --seconds S        time for each client in each cell and round (default 0.3)
  --rounds N         rounds; the medians over them are shown (default 5)
  --in-flight LIST   commands under way at a time (default 1,8,64,512)
  --operations LIST  get, set (default both)
  --clients LIST     names as in the table (default all)
  --pin WHERE        two: the server on one CPU, the clients on another (default); one: all on one; none: anywhere
  --json FILE        writes the numbers, those of every round included
  -h, --help         this text

Status: 0 when every reply was right, 1 when one was not, 2 when it could not run.
)";

struct settings {
  double seconds = 0.3;
  int rounds = 5;
  std::vector<std::size_t> in_flight = {1, 8, 64, 512};
  std::vector<bench::operation> operations = {bench::operation::get, bench::operation::set};
  std::vector<std::string> clients;
  std::string pin = "two";
  std::string json;
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    auto const comma = std::min(text.find(','), text.size());
    out.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

/// A number of the command line, within a range that is safe to run.
double number(std::string const& text, std::string const& option, double low, double high) {
  std::size_t used = 0;
  double n = 0;
  try {
    n = std::stod(text, &used);
  } catch (std::exception const&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || !(n >= low && n <= high)) {
    throw std::invalid_argument(fmt::format("{} {} is not in {} .. {}", option, text, low, high));
  }
  return n;
}

settings parse(std::vector<std::string> const& words) {
  settings out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto const& option = words[i];
    if (i + 1 == words.size())
      throw std::invalid_argument("unknown option, or one without its value: " + option);
    auto const& text = words[++i];
    if (option == "--seconds") {
      out.seconds = number(text, option, 0.001, 60);
    } else if (option == "--rounds") {
      out.rounds = static_cast<int>(number(text, option, 1, 1000));
    } else if (option == "--in-flight") {
      out.in_flight.clear();
      for (auto const& one : split(text))
        out.in_flight.push_back(static_cast<std::size_t>(number(one, option, 1, 1000)));
    } else if (option == "--operations") {
      out.operations.clear();
      for (auto const& one : split(text)) {
        if (one != "get" && one != "set") throw std::invalid_argument("no such operation: " + one);
        out.operations.push_back(one == "get" ? bench::operation::get : bench::operation::set);
      }
    } else if (option == "--clients") {
      out.clients = split(text);
    } else if (option == "--pin") {
      if (text != "two" && text != "one" && text != "none")
        throw std::invalid_argument("--pin takes two, one or none");
      out.pin = text;
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
  auto const where = chosen.pin == "two"   ? bench::placement::two_cpus
                     : chosen.pin == "one" ? bench::placement::one_cpu
                                           : bench::placement::unpinned;
  bench::report out;
  out.machine = bench::machine_facts();  // before pinning: it counts the processors we may use
  auto const placed = bench::place(where, server.pid());
  bench::fill(server.port());
  out.versions = bench::version_facts(server.port());
  out.settings = {{"placement", placed},
                  {"time", fmt::format("{} s for each client and cell, {} rounds, medians", chosen.seconds,
                                       chosen.rounds)},
                  {"data", fmt::format("{} keys with different values of {} bytes", bench::key_count,
                                       bench::value(0).size())}};
  auto peers = peers_for(chosen, server.port());
  for (auto const& one : peers) out.settings.emplace_back(one->name(), one->about());

  std::vector<bench::cell> cells;
  for (auto const op : chosen.operations) {
    for (auto const n : chosen.in_flight) cells.push_back({op, n});
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
  std::vector<std::string> const words(argv + 1, argv + argc);
  if (std::find(words.begin(), words.end(), "--help") != words.end() ||
      std::find(words.begin(), words.end(), "-h") != words.end()) {
    fmt::print("{}", usage);
    return 0;
  }
  try {
    auto const chosen = parse(words);
    auto const measured = run(chosen);
    fmt::print("{}\n{}", measured.head(), measured.table());
    if (!bench::counts_allocations()) fmt::print("\nAllocations are not counted in this build.\n");
    if (!chosen.json.empty()) {
      std::ofstream file(chosen.json);
      file << measured.json();
      if (!file.flush()) throw std::runtime_error("cannot write " + chosen.json);
    }
    std::uint64_t wrong = 0;
    std::uint64_t answers = 0;
    for (auto const& one : measured.lines) wrong += one.wrong, answers += one.answers;
    fmt::print("\n{} replies, {} wrong\n", answers, wrong);
    return wrong == 0 && answers > 0 ? 0 : 1;
  } catch (std::exception const& e) {
    fmt::print(stderr, "redoubt_throughput: {}\n", e.what());
    return 2;
  }
}
