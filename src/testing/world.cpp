// SPDX-License-Identifier: BSL-1.0
#include <redoubt/testing/world.hpp>

#include <boost/asio/post.hpp>

#include "world_core.hpp"

namespace redoubt::testing {

using detail::world_core;

void sim_redis::pause() { server_.pause(); }
void sim_redis::resume() { server_.resume(core_.now()); }
void sim_redis::kill() { server_.kill(); }
void sim_redis::restart() { server_.restart(core_.now()); }
void sim_redis::become_replica() { server_.become_replica(); }
void sim_redis::become_primary() { server_.become_primary(); }
void sim_redis::fill_memory() { server_.fill_memory(); }
void sim_redis::free_memory() { server_.free_memory(); }
void sim_redis::start_loading() { server_.start_loading(); }
void sim_redis::finish_loading() { server_.finish_loading(); }
void sim_redis::pause_writes(duration time) { server_.pause_writes(core_.now() + time); }
void sim_redis::flush_scripts() { server_.flush_scripts(); }

world::world(std::uint64_t seed) : core_(std::make_unique<world_core>(seed)) {}
world::~world() = default;

asio::io_context& world::context() noexcept { return core_->io; }
asio::any_io_executor world::get_executor() noexcept { return core_->io.get_executor(); }
time_point world::now() const noexcept { return core_->now(); }
sim_redis& world::redis() noexcept { return core_->host("").face; }
sim_redis& world::add_server(std::string endpoint) { return core_->add_host(std::move(endpoint)).face; }
network_faults& world::network() noexcept { return core_->faults; }
random_source& world::random() noexcept { return core_->random; }
void world::at(time_point when, std::function<void()> what) { core_->at(when, std::move(what)); }
bool world::step() { return core_->step(); }
std::uint64_t world::trace_hash() const noexcept { return core_->hash; }
std::uint64_t world::events() const noexcept { return core_->events; }
std::size_t world::open_connections() const noexcept { return core_->open_links; }

void world::run_for(duration time) {
  auto const end = core_->now() + time;
  core_->poll();
  while (core_->next_event() <= end) core_->step();
  core_->advance_to(end);
  core_->poll();
}

bool world::run_until(std::function<bool()> const& done, duration limit) {
  auto const end = core_->now() + limit;
  core_->poll();
  while (!done()) {
    if (core_->next_event() > end || !core_->step()) return false;
  }
  return true;
}

void world::run(asio::awaitable<void> work, duration limit) {
  auto const end = std::make_shared<ending>();
  asio::co_spawn(get_executor(), std::move(work), [end](std::exception_ptr e) {
    end->error = e;
    end->done = true;
  });
  finish(*end, limit);
}

void world::finish(ending const& end, duration limit) {
  if (!run_until([&end] { return end.done; }, limit)) {
    throw std::runtime_error(
        "redoubt::testing::world: the coroutine did not end within its limit of virtual time");
  }
  if (end.error) std::rethrow_exception(end.error);
}

namespace detail {

world_core::world_core(std::uint64_t seed) : random(seed), seed_(seed) {
  asio::make_service<virtual_time>(io, *this);
  asio::make_service<sim_connection_factory>(io, *this);
  add_host("");
}

world_core::~world_core() {
  // Events hold handlers, and handlers hold objects of the context: they go first, and none may be added
  // while the context destroys what was posted to it.
  ending_ = true;
  while (!heap_.empty()) heap_ = {};
  for (auto& h : hosts_) forget_links(*h);
}

void world_core::at(time_point when, std::function<void()> what) {
  if (ending_) return;
  heap_.push({std::max(when, now_), order_++, std::move(what)});
}

void world_core::poll() {
  io.restart();
  io.poll();
}

time_point world_core::next_event() const noexcept {
  return heap_.empty() ? time_point::max() : heap_.top().when;
}

bool world_core::step() {
  poll();
  if (heap_.empty()) return false;
  auto next = heap_.top();
  heap_.pop();
  now_ = next.when;
  ++events;
  trace(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  next.what();
  next.what = nullptr;
  poll();
  return true;
}

sim_host& world_core::add_host(std::string endpoint) {
  auto const seed = seed_ + hosts_.size();
  hosts_.push_back(std::make_unique<sim_host>(*this, fake_server_options{.seed = seed}));
  auto& h = *hosts_.back();
  by_endpoint_[std::move(endpoint)] = &h;
  h.server.set_wake([this, &h] { asio::post(io, [this, &h] { pump(h); }); });
  return h;
}

sim_host& world_core::host(std::string const& endpoint) {
  auto const found = by_endpoint_.find(endpoint);
  return found != by_endpoint_.end() ? *found->second : *by_endpoint_.at("");
}

duration world_core::latency() {
  auto const spread = faults.latency_max - faults.latency_min;
  return faults.latency_min +
         duration(static_cast<duration::rep>(
             random.below(static_cast<std::uint64_t>(std::max<duration::rep>(spread.count(), 0)) + 1)));
}

void world_core::trace(std::uint64_t word) noexcept {
  for (int i = 0; i < 8; ++i) hash = (hash ^ ((word >> (8 * i)) & 0xff)) * 0x100000001b3ULL;
}

void world_core::trace(std::string_view bytes) noexcept {
  for (char const c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
}

namespace {

/// A wait in virtual time. The handler lives in a shared state, so that the events that refer to it can be
/// copied.
class virtual_timer final : public timer_backend {
 public:
  virtual_timer(world_core& core, asio::any_io_executor executor)
      : core_(core),
        executor_(std::move(executor)) {}
  ~virtual_timer() override { virtual_timer::cancel(); }

  void wait(time_point when, handler done) override {
    cancel();
    auto const waiting = std::make_shared<state>(core_, executor_, std::move(done));
    current_ = waiting;
    auto slot = asio::get_associated_cancellation_slot(*waiting->done);
    if (slot.is_connected()) {
      slot.assign([weak = current_](asio::cancellation_type) {
        if (auto const s = weak.lock()) fire(s, asio::error::operation_aborted);
      });
    }
    core_.at(when, [waiting] { fire(waiting, {}); });
  }

  void cancel() override {
    if (auto const waiting = current_.lock()) fire(waiting, asio::error::operation_aborted);
    current_.reset();
  }

 private:
  struct state {
    state(world_core& c, asio::any_io_executor e, handler d) : core(c), executor(std::move(e)) {
      done.emplace(std::move(d));
    }
    world_core& core;
    asio::any_io_executor executor;
    std::optional<handler> done;
    bool fired = false;
  };

  static void fire(std::shared_ptr<state> const& s, boost::system::error_code error) {
    if (std::exchange(s->fired, true)) return;
    asio::post(s->core.io, [s, error] {
      auto const executor = asio::get_associated_executor(*s->done, s->executor);
      asio::dispatch(executor, [s, error] {
        auto slot = asio::get_associated_cancellation_slot(*s->done);
        if (slot.is_connected()) slot.clear();
        handler done(std::move(*s->done));
        s->done.reset();
        std::move(done)(error);
      });
    });
  }

  world_core& core_;
  asio::any_io_executor executor_;
  std::weak_ptr<state> current_;  // the event owns it: the handler may own this timer
};

}  // namespace

std::unique_ptr<timer_backend> virtual_time::make_timer(asio::any_io_executor const& executor) {
  return std::make_unique<virtual_timer>(core_, executor);
}

}  // namespace detail
}  // namespace redoubt::testing
