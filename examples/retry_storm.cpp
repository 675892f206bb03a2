// SPDX-License-Identifier: BSL-1.0
//
// What retries do to a dependency that is gone: 1000 instances, simulated in virtual time, with and without a
// shared retry budget, and how their first retries spread. docs/RETRIES.md has the output and what it says.
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <redoubt/async/clock.hpp>
#include <redoubt/guard/retry.hpp>
#include <redoubt/testing/world.hpp>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using redoubt::duration;
using redoubt::result;

namespace {

constexpr std::size_t instances = 1000;
constexpr std::size_t seconds = 14;  // the dependency is gone in seconds 2 to 9
constexpr bool gone(std::size_t second) { return second >= 2 && second < 10; }
constexpr duration between_operations = 250ms;  // of one instance

redoubt::failure refused() {
  redoubt::failure f;
  f.code = redoubt::errc::connection_refused;
  f.effect = redoubt::effect::none;
  return f;
}

/// The attempts that reach the dependency in each second.
class dependency {
 public:
  explicit dependency(redoubt::testing::world& w) : world_(w), start_(w.now()) {}
  result<int> attempt() {
    auto const second = static_cast<std::size_t>((world_.now() - start_) / 1s);
    if (second < seconds) ++load[second];
    return gone(second) ? result<int>(refused()) : result<int>(1);
  }
  std::array<int, seconds> load{};

 private:
  redoubt::testing::world& world_;
  redoubt::time_point start_;
};

/// One instance makes an operation every now and then, whether the ones before have ended or not.
class instance {
 public:
  instance(redoubt::testing::world& w, dependency& d, std::uint32_t retries,
           std::optional<redoubt::retry_budget::options> budget, std::uint64_t seed)
      : world_(w),
        dependency_(d),
        budget_(budget ? std::make_unique<redoubt::retry_budget>(*budget) : nullptr),
        retry_({.retries = retries, .total = 3s, .pause = {.base = 100ms, .cap = 1s}}, budget_.get(), seed) {}

  asio::awaitable<void> run(duration phase) {
    redoubt::timer clock(world_.get_executor());
    auto const executor = world_.get_executor();
    auto attempt = [this](redoubt::deadline) -> asio::awaitable<result<int>> {
      co_return dependency_.attempt();
    };
    auto const end = world_.now() + 1s * seconds;
    for (auto next = world_.now() + phase; next < end; next += between_operations) {
      boost::system::error_code error;
      co_await clock.async_wait_until(next, asio::redirect_error(asio::use_awaitable, error));
      retry_.run<int>(executor, {}, redoubt::repeat::not_executed, attempt, asio::detached);
    }
    co_await clock.async_wait_until(end + 5s, asio::use_awaitable);  // until its operations have ended
  }

 private:
  redoubt::testing::world& world_;
  dependency& dependency_;
  std::unique_ptr<redoubt::retry_budget> budget_;
  redoubt::retry retry_;
};

std::array<int, seconds> storm(std::uint32_t retries, std::optional<redoubt::retry_budget::options> budget) {
  redoubt::testing::world world(7);
  dependency service(world);
  std::deque<instance> all;
  for (std::size_t i = 0; i < instances; ++i) {
    auto& one = all.emplace_back(world, service, retries, budget, i * 1'000'003);
    asio::co_spawn(world.get_executor(), one.run(between_operations * i / instances), asio::detached);
  }
  world.run_for(1s * seconds + 6s);
  return service.load;
}

/// When each of 1000 clients that failed at the same instant tries again.
std::vector<duration> first_retries() {
  redoubt::testing::world world(7);
  redoubt::retry again({.retries = 1, .total = 2s, .pause = {.base = 1s, .cap = 1s}}, 42);
  auto const start = world.now();
  std::vector<duration> at;
  int first = 0;
  auto attempt = [&](redoubt::deadline) -> asio::awaitable<result<int>> {
    if (first < 1000) {
      ++first;
      co_return refused();
    }
    at.push_back(world.now() - start);
    co_return 1;
  };
  for (int i = 0; i < 1000; ++i)
    again.run<int>(world.get_executor(), {}, redoubt::repeat::not_executed, attempt, asio::detached);
  world.run_for(2s);
  return at;
}

}  // namespace

int main() {
  auto const none = storm(0, std::nullopt);
  auto const unlimited = storm(3, std::nullopt);
  auto const usual = storm(3, redoubt::retry_budget::options{});
  auto const strict =
      storm(3, redoubt::retry_budget::options{.ratio = 0.1, .per_second = 0.1, .capacity = 2});

  std::cout
      << "Attempts per second on a dependency, 1000 instances with 4 operations a second each\n\n"
      << "| second | dependency | no retry | 3 retries | 3 retries, budget | 3 retries, strict budget |\n"
      << "|---|---|---|---|---|---|\n";
  for (std::size_t s = 0; s < seconds; ++s) {
    std::cout << fmt::format("| {} | {} | {} | {} | {} | {} |\n", s, gone(s) ? "gone" : "well", none[s],
                             unlimited[s], usual[s], strict[s]);
  }

  auto const at = first_retries();
  std::array<int, 20> cells{};
  for (auto t : at) ++cells.at(std::min<std::size_t>(19, static_cast<std::size_t>(t / 50ms)));
  std::cout << "\nFirst retry of 1000 clients that failed at the same instant, base = cap = 1 s\n\n";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::cout << fmt::format("{:>4} - {:>4} ms {:>3} {}\n", i * 50, i * 50 + 50, cells.at(i),
                             std::string(static_cast<std::size_t>(cells.at(i)) / 2, '#'));
  }

  // The last full second of the outage: what is left when the savings are spent.
  bool const multiplied = unlimited[9] > 3 * none[9];
  bool const bounded = usual[9] < none[9] + none[9] / 2 && strict[9] < none[9] + none[9] / 10;
  bool const spread = at.size() == 1000 && *std::min_element(cells.begin(), cells.end()) > 25;
  return multiplied && bounded && spread ? 0 : 1;
}
