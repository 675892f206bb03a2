// SPDX-License-Identifier: BSL-1.0
//
// Latency under a load that does not wait for answers: GETs arrive at fixed times, at half of what hiredis
// async can do at most, and each one's wait counts from the time at which it was to begin. Every reply is
// checked.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <redoubt/client.hpp>

#include "command_line.hpp"
#include "open_loop/libuv_sender.hpp"
#include "open_loop/sender.hpp"
#include "real_redis.hpp"
#include "throughput/machine.hpp"
#include "throughput/peer.hpp"
#include "throughput/peer_redoubt.hpp"
#include "throughput/report.hpp"

namespace {

using bench::arrivals;
using steady = std::chrono::steady_clock;

constexpr std::string_view usage = R"(Usage: redoubt_open_loop [OPTION]...

Sends GETs of 100 bytes at a fixed rate, whether or not the earlier ones are answered, with this library and with
hiredis async in turns. The thread that sends also runs the client's loop, without sleeping.

  --share P       the rate, as a share of what hiredis async does with 512 calls in flight (default 0.5)
  --rate N        the rate itself, in calls per second
  --seconds S     for each client and round (default 1)
  --rounds N      rounds; the medians over them are shown (default 5)
  --pin WHERE     two: the server on one CPU, the clients on another (default); one: all on one; none: anywhere
  --json FILE     writes the numbers
  -h, --help      this text

Status: 0 when every reply was right, 1 when one was not, 2 when it could not run.
)";

/// With room for all calls that come while the machine stands still: hiredis refuses none.
redoubt::client_options unbounded(int port) {
  auto out = bench::options_for(port);
  out.bounds.in_flight = 100'000;
  return out;
}

class redoubt_sender final : public bench::sender {
 public:
  explicit redoubt_sender(int port) : client_(context_, unbounded(port)) {
    bool connected = false;
    for (int tries = 0; tries < 50 && !connected; ++tries) {
      client_.async_call(redoubt::command("PING"), {},
                         [&](auto r) { connected = r.has_value(), context_.stop(); });
      context_.restart();
      context_.run();
    }
    if (!connected) throw std::runtime_error("redoubt: cannot connect");
    context_.restart();
  }
  [[nodiscard]] std::string_view name() const override { return "redoubt"; }
  void send(std::size_t i, arrivals& into) override {
    auto const& key = into.data().keys[i % into.data().keys.size()];
    client_.async_call(redoubt::command("GET", key), {}, [i, &into](redoubt::result<redoubt::reply> r) {
      r && r->is_string() ? into.answered(i, r->as_string()) : into.failed(i);
    });
  }
  void turn() override { context_.poll(); }

 private:
  boost::asio::io_context context_{1};
  redoubt::client client_;
};

struct settings {
  double share = 0.5;
  double rate = 0;
  double seconds = 1;
  int rounds = 5;
  bench::placement pin = bench::placement::two_cpus;
  std::string json;
};

struct line {
  std::string peer;
  std::vector<double> p50, p99, p999, longest;  ///< us; one per round
  std::size_t answers = 0, wrong = 0, failed = 0;

  void add(arrivals& one) {
    auto& waits = one.waits_us();
    std::sort(waits.begin(), waits.end());
    auto const at = [&](double q) {
      return static_cast<double>(waits[static_cast<std::size_t>(q * static_cast<double>(waits.size() - 1))]);
    };
    p50.push_back(at(0.5)), p99.push_back(at(0.99)), p999.push_back(at(0.999)), longest.push_back(at(1));
    answers += one.answers(), wrong += one.wrong(), failed += one.failed();
  }
};

/// Lets `one` answer `rate` calls per second for `seconds`.
void drive(bench::sender& one, arrivals& into) {
  auto const give_up = steady::now() + std::chrono::seconds(30);
  std::size_t sent = 0;
  while (!into.over()) {
    auto const now = steady::now();
    for (; sent < into.size() && into.due(sent) <= now; ++sent) one.send(sent, into);
    one.turn();
    if (now > give_up) throw std::runtime_error(fmt::format("{}: answers are missing", one.name()));
  }
}

double capacity(int port) {
  bench::peer_list peers;
  bench::add_hiredis_async(peers, port);
  if (peers.empty()) bench::add_redoubt(peers, port);
  std::vector<double> rates;
  for (int i = 0; i < 5; ++i) {
    auto const got = peers.front()->run({&bench::loads[0], 512}, 0.2);
    rates.push_back(static_cast<double>(got.answers) / got.seconds);
  }
  return bench::median(rates);
}

std::string ratio(std::vector<double> const& a, std::vector<double> const& b) {
  std::vector<double> all;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) all.push_back(a[i] / b[i]);
  return fmt::format("{:.2f}", bench::median(all));
}

int run(settings chosen) {
  redoubt::test_support::real_redis server;
  auto facts = bench::machine_facts();
  facts.emplace_back("placement", bench::place(chosen.pin, server.pid()));
  bench::fill(bench::loads[0], server.port());
  for (auto const& one : bench::version_facts(server.port())) facts.push_back(one);
  if (chosen.rate == 0) {
    auto const most = capacity(server.port());
    chosen.rate = most * chosen.share;
    facts.emplace_back("rate",
                       fmt::format("{:.0f} calls/s, {:.2f} of {:.0f}", chosen.rate, chosen.share, most));
  } else {
    facts.emplace_back("rate", fmt::format("{:.0f} calls/s", chosen.rate));
  }
  facts.emplace_back("time",
                     fmt::format("{} s for each client, {} rounds, medians", chosen.seconds, chosen.rounds));

  std::vector<std::unique_ptr<bench::sender>> senders;
  senders.push_back(std::make_unique<redoubt_sender>(server.port()));
  if (auto other = bench::make_libuv_sender(server.port())) senders.push_back(std::move(other));
  std::deque<line> lines;
  for (auto const& one : senders) lines.push_back({std::string(one->name()), {}, {}, {}, {}});
  for (std::size_t round = 0; round <= static_cast<std::size_t>(chosen.rounds); ++round) {
    for (std::size_t i = 0; i < senders.size(); ++i) {
      auto const who = (i + round) % senders.size();
      arrivals into(chosen.rate, round == 0 ? std::min(0.1, chosen.seconds) : chosen.seconds);
      drive(*senders[who], into);
      if (round > 0) lines[who].add(into);  // the first is a warm-up
    }
  }

  for (auto const& [name, text] : facts) fmt::print("{:<20}{}\n", name, text);
  fmt::print("\n{:<15}{:>9}{:>9}{:>10}{:>9}{:>10}{:>9}{:>8}{:>8}\n", "client", "p50 us", "p99 us", "x async",
             "p99.9 us", "x async", "max us", "wrong", "failed");
  auto const& base = lines.back();
  std::string json;
  bool good = true;
  for (auto const& one : lines) {
    auto const m = [](std::vector<double> const& all) { return bench::median(all); };
    fmt::print("{:<15}{:>9.1f}{:>9.1f}{:>10}{:>9.1f}{:>10}{:>9.0f}{:>8}{:>8}\n", one.peer, m(one.p50),
               m(one.p99), ratio(one.p99, base.p99), m(one.p999), ratio(one.p999, base.p999), m(one.longest),
               one.wrong, one.failed);
    json +=
        fmt::format("{}{{\"client\": \"{}\", \"rate\": {:.0f}, \"p50_us\": {:.2f}, \"p99_us\": {:.2f}, "
                    "\"p999_us\": {:.2f}, \"max_us\": {:.2f}, \"p99_times_async\": {}, \"answers\": {}, "
                    "\"wrong\": {}, \"failed\": {}}}",
                    json.empty() ? "[" : ",\n ", one.peer, chosen.rate, m(one.p50), m(one.p99), m(one.p999),
                    m(one.longest), ratio(one.p99, base.p99), one.answers, one.wrong, one.failed);
    good = good && one.wrong == 0 && one.answers > 0;
  }
  bench::write_file(chosen.json, json + "]\n");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::program("redoubt_open_loop", usage, argc, argv, [](bench::command_line const& words) {
    settings chosen;
    for (auto const& [option, text] : words) {
      if (option == "--share") {
        chosen.share = bench::number(text, option, 0.01, 1);
      } else if (option == "--rate") {
        chosen.rate = bench::number(text, option, 1, 1e7);
      } else if (option == "--seconds") {
        chosen.seconds = bench::number(text, option, 0.01, 60);
      } else if (option == "--rounds") {
        chosen.rounds = static_cast<int>(bench::number(text, option, 1, 1000));
      } else if (option == "--pin") {
        chosen.pin = bench::placement_named(text);
      } else if (option == "--json") {
        chosen.json = text;
      } else {
        throw std::invalid_argument("unknown option: " + option);
      }
    }
    return run(chosen);
  });
}
