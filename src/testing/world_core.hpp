// SPDX-License-Identifier: BSL-1.0
//
// The inside of a world: event heap, clock, network.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/net/connection.hpp>
#include <redoubt/testing/world.hpp>

namespace redoubt::testing::detail {

namespace asio = boost::asio;

struct sim_link;

/// One server on the network.
struct sim_host {
  sim_host(world_core& core, fake_server_options options) : server(std::move(options)), face(core, server) {}
  fake_server server;
  sim_redis face;
  std::map<fake_server::session, std::shared_ptr<sim_link>> links;
  time_point wake_at = time_point::max();
};

/// Lets go of every connection and of the handlers that wait on it.
void forget_links(sim_host& h);

class world_core {
 public:
  explicit world_core(std::uint64_t seed);
  ~world_core();

  [[nodiscard]] time_point now() const noexcept { return now_; }
  void at(time_point when, std::function<void()> what);
  bool step();
  void poll();
  [[nodiscard]] time_point next_event() const noexcept;
  void advance_to(time_point t) noexcept { now_ = std::max(now_, t); }

  /// The host an endpoint leads to.
  sim_host& host(std::string const& endpoint);
  sim_host& add_host(std::string endpoint);
  /// Moves what the server has to say onto the network, and makes sure that it is woken in time.
  void pump(sim_host& h);

  void trace(std::uint64_t word) noexcept;
  void trace(std::string_view bytes) noexcept;
  [[nodiscard]] duration latency();
  [[nodiscard]] bool happens(std::uint32_t ppm) noexcept { return ppm != 0 && random.chance(ppm, 1'000'000); }

  random_source random;
  network_faults faults;
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  std::uint64_t events = 0;
  std::size_t open_links = 0;

 private:
  struct event {
    time_point when;
    std::uint64_t order;
    std::function<void()> what;
    friend bool operator<(event const& a, event const& b) noexcept {
      return a.when != b.when ? a.when > b.when : a.order > b.order;  // the queue's top is its greatest
    }
  };

  std::priority_queue<event> heap_;
  std::uint64_t order_ = 0;
  bool ending_ = false;
  time_point now_{std::chrono::hours(1000)};
  std::uint64_t seed_;
  std::vector<std::unique_ptr<sim_host>> hosts_;
  std::map<std::string, sim_host*> by_endpoint_;

 public:
  asio::io_context io{1};  // last: destroyed first, while its services can still reach the rest
};

/// The world's clock as the library sees it.
class virtual_time final : public time_source {
 public:
  virtual_time(asio::execution_context& context, world_core& core) : time_source(context), core_(core) {}
  [[nodiscard]] time_point now() const noexcept override { return core_.now(); }
  [[nodiscard]] std::unique_ptr<timer_backend> make_timer(asio::any_io_executor const& executor) override;
  [[nodiscard]] world_core& core() noexcept { return core_; }

 private:
  world_core& core_;
};

/// Makes connections over the simulated network.
class sim_connection_factory final : public redoubt::detail::connection_factory {
 public:
  sim_connection_factory(asio::execution_context& context, world_core& core)
      : redoubt::detail::connection_factory(context),
        core_(core) {}
  [[nodiscard]] std::vector<std::shared_ptr<redoubt::detail::connection>> make(
      asio::any_io_executor const& executor, client_options const& options,
      std::shared_ptr<redoubt::detail::load_gate> const& gate) override;

 private:
  world_core& core_;
};

}  // namespace redoubt::testing::detail
