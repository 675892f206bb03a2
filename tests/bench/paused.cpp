// SPDX-License-Identifier: BSL-1.0
//
// A server that is frozen (SIGSTOP) while calls keep coming, hundreds or hundreds of thousands of them: how
// long callers wait, what the process grows by, what a refused call costs.
#include <ctime>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <redoubt/client.hpp>

#include "command_line.hpp"
#include "real_redis.hpp"
#include "throughput/machine.hpp"
#include "throughput/peer.hpp"
#include "throughput/peer_redoubt.hpp"
#include "throughput/report.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr std::string_view usage = R"(Usage: redoubt_paused [OPTION]...

Makes calls at a fixed rate, half of them GET and half INCR, to a redis-server that is stopped meanwhile and goes
on afterwards. Every call has the same limit. The calls of a millisecond begin together, on the client's thread.

  --rates LIST   calls per second (default 5000,100000)
  --seconds S    how long the server is stopped (default 2)
  --limit MS     limit of a call, in milliseconds (default 150)
  --rounds N     rounds for each rate, each with a server and a client of its own (default 5)
  --pin WHERE    two: the server on one CPU, the client on another (default); one: all on one; none: anywhere
  --json FILE    writes the numbers
  -h, --help     this text

Status: 0 when every call ended once and every reply was right, 1 when not, 2 when it could not run.
)";

struct settings {
  std::vector<double> rates = {5000, 100'000};
  double seconds = 2;
  std::chrono::milliseconds limit = 150ms;
  int rounds = 5;
  bench::placement pin = bench::placement::two_cpus;
  std::string json;
};

/// What one pause came to.
struct outcome {
  std::size_t calls = 0;
  std::size_t ended = 0;
  std::size_t rejected = 0;  ///< Refused at once, by a bound or because there is no connection.
  std::size_t wrong = 0;
  double longest_ms = 0;         ///< Of all calls.
  double grown_mb = 0;           ///< Most that the process held during the pause, over what it held before.
  double cpu_us = 0;             ///< Of this process during the pause, its timer and loop included.
  double first_success_ms = -1;  ///< After the server went on.
};

double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

class experiment {
 public:
  experiment(settings const& chosen, double rate) : chosen_(chosen), rate_(rate) {
    place_ = bench::place(chosen.pin, server_.pid());
    for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = fmt::format("get:{}", i);
  }

  outcome run() {
    auto options = bench::options_for(server_.port());
    options.timeouts = {.connect = chosen_.limit, .attempt = chosen_.limit, .call = chosen_.limit};
    redoubt::client client(context_, options);
    client_ = &client;
    for (std::size_t i = 0; i < keys_.size(); ++i) must(redoubt::command("SET", keys_[i], keys_[i]));
    // The same rate for a moment while the server answers: what the client keeps for itself is there before.
    tick_for(300ms);
    settle();
    (void)std::exchange(out_, {});
    ::malloc_trim(0);
    auto const memory = resident_mb();
    auto most = memory;
    server_.pause();
    auto const cpu = bench::cpu_us();
    auto const pause =
        std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(chosen_.seconds));
    tick_for(pause, [&] { most = std::max(most, resident_mb()); });
    out_.cpu_us = bench::cpu_us() - cpu;
    auto in_pause = out_;
    server_.resume();
    auto const resumed = steady::now();
    while (out_.first_success_ms < 0 && steady::now() < resumed + 10s) {
      start([this, resumed](redoubt::result<redoubt::reply> const& r) {
        if (r && out_.first_success_ms < 0)
          out_.first_success_ms = std::chrono::duration<double, std::milli>(steady::now() - resumed).count();
      });
      context_.restart();
      context_.run_for(200us);
    }
    settle();
    out_.rejected = in_pause.rejected;
    out_.cpu_us = in_pause.cpu_us;
    out_.grown_mb = most - memory;
    client_ = nullptr;
    return out_;
  }

  [[nodiscard]] std::string const& place() const noexcept { return place_; }
  [[nodiscard]] bench::facts versions() const { return bench::version_facts(server_.port()); }

 private:
  template <class Also>
  void start(Also also) {
    auto const i = out_.calls++ % keys_.size();
    bool const get = (out_.calls & 1) != 0;
    auto const began = steady::now();
    client_->async_call(get ? redoubt::command("GET", keys_[i]) : redoubt::command("INCR", "counter"), {},
                        [this, get, i, began, also](redoubt::result<redoubt::reply> const& r) {
                          std::chrono::duration<double, std::milli> const wait = steady::now() - began;
                          out_.longest_ms = std::max(out_.longest_ms, wait.count());
                          ++out_.ended;
                          if (!r) {
                            out_.rejected += r.error().rejected ? 1 : 0;
                          } else if (get ? r->as_string() != keys_[i] : !r->is_integer()) {
                            ++out_.wrong;
                          }
                          also(r);
                        });
  }

  /// Calls at the rate for so long; `look` every 50 ms.
  template <class Look = void (*)()>
  void tick_for(
      steady::duration time, Look look = [] {}) {
    auto const begin = steady::now();
    auto const end = begin + time;
    asio::steady_timer timer(context_);
    std::size_t begun = 0;
    auto next_look = begin;
    auto tick = [&](auto& self) -> void {
      auto const now = steady::now();
      auto const due =
          static_cast<std::size_t>(rate_ * std::chrono::duration<double>(std::min(now, end) - begin).count());
      for (; begun < due; ++begun) start([](auto const&) {});
      if (now >= next_look) look(), next_look = now + 50ms;
      if (now >= end) return context_.stop();
      timer.expires_at(now + 1ms);
      timer.async_wait([&self](boost::system::error_code) { self(self); });
    };
    context_.restart();
    tick(tick);
    context_.run();
  }

  /// Until every call has ended.
  void settle() {
    auto const give_up = steady::now() + 10s;
    while (out_.ended < out_.calls && steady::now() < give_up) {
      context_.restart();
      context_.run_for(1ms);
    }
  }

  void must(redoubt::command const& c) {
    bool done = false;
    for (int tries = 0; tries < 50 && !done; ++tries) {
      client_->async_call(c, {}, [&](auto r) { done = r.has_value(), context_.stop(); });
      context_.restart();
      context_.run();
    }
    if (!done) throw std::runtime_error("the server does not answer");
  }

  settings const& chosen_;
  double rate_;
  redoubt::test_support::real_redis server_;
  std::string place_;
  std::array<std::string, 64> keys_;
  asio::io_context context_{1};
  redoubt::client* client_ = nullptr;
  outcome out_;
};

int run(settings const& chosen) {
  auto facts = bench::machine_facts();
  std::string rows;
  std::string json;
  bool good = true;
  auto const limit_ms = static_cast<double>(chosen.limit.count());
  for (auto const rate : chosen.rates) {
    std::vector<double> longest, grown, per_rejected, first;
    std::size_t calls = 0, rejected = 0, wrong = 0, lost = 0;
    for (int round = 0; round < chosen.rounds; ++round) {
      experiment one(chosen, rate);
      if (facts.back().first != "placement") {
        for (auto const& fact : one.versions()) facts.push_back(fact);
        facts.emplace_back("placement", one.place());
      }
      auto const got = one.run();
      longest.push_back(got.longest_ms / limit_ms);
      grown.push_back(got.grown_mb);
      first.push_back(got.first_success_ms);
      if (got.rejected > got.calls / 2)
        per_rejected.push_back(got.cpu_us / static_cast<double>(got.rejected));
      calls += got.calls, rejected += got.rejected, wrong += got.wrong, lost += got.calls - got.ended;
      good = good && got.wrong == 0 && got.calls == got.ended && got.first_success_ms >= 0;
    }
    auto const cost =
        per_rejected.empty() ? std::string("-") : fmt::format("{:.2f}", bench::median(per_rejected));
    auto const worst = *std::max_element(longest.begin(), longest.end());
    rows += fmt::format("{:<12.0f}{:>10}{:>10}{:>14.3f}{:>10.3f}{:>10.2f}{:>15}{:>18.2f}{:>7}{:>7}\n", rate,
                        calls, rejected, bench::median(longest), worst, bench::median(grown), cost,
                        bench::median(first), wrong, lost);
    json += fmt::format(
        "{}{{\"rate\": {:.0f}, \"calls\": {}, \"rejected\": {}, \"longest_over_limit\": {:.4f}, "
        "\"longest_over_limit_worst\": {:.4f}, \"grown_mb\": {:.3f}, \"cpu_us_per_rejected\": {}, "
        "\"first_success_ms\": {:.3f}, \"wrong\": {}, \"lost\": {}}}",
        json.empty() ? "[" : ",\n ", rate, calls, rejected, bench::median(longest), worst,
        bench::median(grown), per_rejected.empty() ? "null" : cost, bench::median(first), wrong, lost);
  }
  for (auto const& [name, text] : facts) fmt::print("{:<20}{}\n", name, text);
  fmt::print(
      "{:<20}stopped for {} s, limit {} ms, {} rounds, medians (and the worst of the longest waits)\n\n",
      "pause", chosen.seconds, limit_ms, chosen.rounds);
  fmt::print("{:<12}{:>10}{:>10}{:>14}{:>10}{:>10}{:>15}{:>18}{:>7}{:>7}\n{}", "calls/s", "calls", "rejected",
             "longest/limit", "worst", "grown MB", "CPU us/reject", "first success ms", "wrong", "lost",
             rows);
  bench::write_file(chosen.json, json + "]\n");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::program("redoubt_paused", usage, argc, argv, [](bench::command_line const& words) {
    settings chosen;
    for (auto const& [option, text] : words) {
      if (option == "--rates") {
        chosen.rates.clear();
        for (auto const& one : bench::split(text)) chosen.rates.push_back(bench::number(one, option, 1, 1e6));
      } else if (option == "--seconds") {
        chosen.seconds = bench::number(text, option, 0.05, 60);
      } else if (option == "--limit") {
        chosen.limit = std::chrono::milliseconds(static_cast<int>(bench::number(text, option, 1, 10'000)));
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
