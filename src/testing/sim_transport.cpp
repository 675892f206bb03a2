// SPDX-License-Identifier: BSL-1.0
#include <redoubt/testing/sim_transport.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <redoubt/net/connection.hpp>

#include "world_core.hpp"

namespace redoubt::testing {
namespace detail {

/// One connection of the network, known to both of its ends.
struct sim_link : std::enable_shared_from_this<sim_link> {
  sim_link(world_core& c, sim_host& h, sim_transport::executor_type s)
      : core(c),
        host(h),
        strand(std::move(s)) {
    ++core.open_links;
  }
  ~sim_link() {
    if (!closed) --core.open_links;
  }

  world_core& core;
  sim_host& host;
  sim_transport::executor_type strand;
  fake_server::session session = 0;
  bool closed = false;  // by the client
  bool ended =
      false;  // by the server or by the network; the client sees it once it has read what came before
  bool broken = false;     // with a reset
  time_point up_free{};    // towards the server: nothing overtakes
  time_point down_free{};  // towards the client
  std::size_t in_window = 0;
  std::optional<std::size_t> reset_after;      // bytes, both directions together
  std::optional<std::size_t> blackhole_after;  // dito
  std::size_t carried = 0;
  std::string arrived;
  asio::mutable_buffer read_buffer;
  sim_transport::io_handler reader;
  asio::const_buffer write_buffer;
  sim_transport::io_handler writer;

  void draw() {
    auto const point = [this] { return core.random.below(core.faults.reset_after_max) + 1; };
    if (core.happens(core.faults.reset_ppm)) reset_after = point();
    if (core.happens(core.faults.blackhole_ppm)) blackhole_after = point();
  }

  [[nodiscard]] bool swallowed() const noexcept { return blackhole_after && carried >= *blackhole_after; }

  /// Counts bytes against the faults of this connection; false when they do not get through.
  bool carry(std::size_t n) {
    carried += n;
    if (reset_after && carried >= *reset_after) {
      break_down();
      return false;
    }
    return !swallowed();
  }

  void break_down() {
    if (ended) return;
    ended = broken = true;
    arrived.clear();
    host.server.on_closed(session, core.now());
    host.links.erase(session);
    core.pump(host);
    serve();
  }

  time_point slot(time_point& free_at, duration delay) {
    auto extra = core.latency() + delay;
    if (core.happens(core.faults.pause_ppm)) {
      extra += duration(static_cast<duration::rep>(
          core.random.below(static_cast<std::uint64_t>(core.faults.pause_max.count()) + 1)));
    }
    free_at = std::max(free_at, core.now() + extra);
    return free_at;
  }

  /// Gives the client what has arrived, when it is waiting for something.
  void serve() {
    if (closed || !reader) return;
    if (arrived.empty() && !ended) return;
    boost::system::error_code error;
    std::size_t n = 0;
    if (!arrived.empty()) {
      n = std::min(arrived.size(), read_buffer.size());
      std::memcpy(read_buffer.data(), arrived.data(), n);
      arrived.erase(0, n);
    } else {
      error = broken ? boost::system::error_code(asio::error::connection_reset)
                     : boost::system::error_code(asio::error::eof);
    }
    asio::post(strand, [done = std::exchange(reader, nullptr), error, n] { done(error, n); });
    if (ended && writer) take_write();
  }

  /// Takes a pending write, or what there is room for.
  void take_write() {
    if (closed || !writer) return;
    if (ended) {
      asio::post(strand, [done = std::exchange(writer, nullptr)] { done(asio::error::broken_pipe, 0); });
      return;
    }
    if (in_window >= core.faults.window) return;
    auto n = std::min(write_buffer.size(), core.faults.window - in_window);
    if (n > 1 && core.happens(core.faults.partial_write_ppm)) n = core.random.below(n - 1) + 1;
    std::string bytes(static_cast<char const*>(write_buffer.data()), n);
    in_window += n;
    core.trace(n);
    core.at(slot(up_free, {}), [self = shared_from_this(), b = std::move(bytes)] { self->deliver_up(b); });
    asio::post(strand, [done = std::exchange(writer, nullptr), n] { done({}, n); });
  }

  void deliver_up(std::string const& bytes) {
    in_window -= bytes.size();
    if (!ended && carry(bytes.size())) {
      core.trace(bytes);
      host.server.on_bytes(session, bytes, core.now());
      core.pump(host);
    }
    take_write();
  }

  using secure_handler = std::function<void(errc, std::string_view)>;

  /// The peer's side of a TLS handshake: a frozen server makes it when it goes on.
  void secured(secure_handler const& done, errc code, std::string_view note) {
    if (closed || swallowed()) return;
    if (!ended && host.server.paused()) {
      core.at(core.now() + std::chrono::milliseconds(1),
              [self = shared_from_this(), done, code, note] { self->secured(done, code, note); });
      return;
    }
    asio::post(strand, [done, code = ended ? errc::tls_failed : code, note] { done(code, note); });
  }

  void send_down(std::string bytes, duration delay) {
    while (!bytes.empty()) {
      auto n = bytes.size();
      if (n > 1 && core.happens(core.faults.split_ppm)) n = core.random.below(n - 1) + 1;
      std::string piece = bytes.substr(0, n);
      bytes.erase(0, n);
      if (core.happens(core.faults.garble_ppm)) piece[core.random.below(piece.size())] ^= 0x15;
      core.at(slot(down_free, std::exchange(delay, {})), [self = shared_from_this(), p = std::move(piece)] {
        if (self->ended || self->closed || !self->carry(p.size())) return;
        self->core.trace(p);
        self->arrived += p;
        self->serve();
      });
    }
  }

  void end_down(bool reset, duration delay) {
    core.at(slot(down_free, delay), [self = shared_from_this(), reset] {
      if (self->ended || self->swallowed()) return;
      self->ended = true;
      self->broken = reset;
      if (reset) self->arrived.clear();
      self->serve();
      self->take_write();
    });
  }
};

void forget_links(sim_host& h) {
  for (auto& [session, link] : h.links) link->reader = link->writer = nullptr;
  h.links.clear();
}

void world_core::pump(sim_host& h) {
  for (auto& out : h.server.take_output()) {
    auto const found = h.links.find(out.to);
    if (found == h.links.end()) continue;
    auto const link = found->second;
    if (!out.bytes.empty()) {
      link->send_down(std::move(out.bytes), std::exchange(out.delay, {}));
    }
    if (out.close || out.reset) {
      link->end_down(out.reset, out.delay);
      h.links.erase(out.to);
    }
  }
  if (auto const wake = h.server.next_wakeup(); wake && *wake < h.wake_at) {
    h.wake_at = *wake;
    at(*wake, [this, &h] {
      h.wake_at = time_point::max();
      h.server.on_time(now());
      pump(h);
    });
  }
}

std::vector<std::shared_ptr<redoubt::detail::connection>> sim_connection_factory::make(
    asio::any_io_executor const& executor, client_options const& options,
    std::shared_ptr<redoubt::detail::load_gate> const& gate) {
  std::vector<std::shared_ptr<redoubt::detail::connection>> out;
  for (std::uint32_t i = 0; i < options.connections; ++i) {
    out.push_back(std::make_shared<redoubt::detail::basic_connection<sim_transport>>(executor, options, gate,
                                                                                     core_.random()));
  }
  return out;
}

}  // namespace detail

sim_transport::sim_transport(executor_type strand, client_options const& options)
    : strand_(std::move(strand)),
      core_(static_cast<detail::virtual_time&>(time_source::of(strand_)).core()),
      endpoint_(options.endpoint_text()) {}

sim_transport::~sim_transport() { close(); }

void sim_transport::async_resolve(std::function<void(errc, addresses)> done) {
  if (core_.happens(core_.faults.resolve_hangs_ppm)) return;
  bool const fails = core_.happens(core_.faults.resolve_fails_ppm);
  core_.at(core_.now() + core_.faults.resolve_delay,
           [strand = strand_, d = std::move(done), fails, name = endpoint_] {
             asio::post(strand, [d, fails, name] {
               d(fails ? errc::resolve_failed : errc::unspecified, fails ? addresses{} : addresses{name});
             });
           });
}

void sim_transport::adopt(addresses found) { addresses_ = std::move(found); }

void sim_transport::async_connect(time_point, std::function<void(errc)> done) {
  close();
  auto& host = core_.host(addresses_.front());
  link_ = std::make_shared<detail::sim_link>(core_, host, strand_);
  if (core_.happens(core_.faults.connect_hangs_ppm)) return;
  bool const refused = core_.happens(core_.faults.refuse_ppm);
  auto const arrives = core_.now() + core_.latency();
  core_.at(arrives, [link = link_, d = std::move(done), refused] {
    auto& core = link->core;
    bool const open = !refused && link->host.server.accepts();
    if (open && !link->closed) {
      link->session = link->host.server.open(core.now());
      link->host.links[link->session] = link;
      link->draw();
      core.pump(link->host);
    }
    core.at(core.now() + core.latency(), [link, d, open] {
      if (link->closed) return;
      asio::post(link->strand, [d, open] { d(open ? errc::unspecified : errc::connection_refused); });
    });
  });
}

void sim_transport::async_secure(std::function<void(errc, std::string_view)> done) {
  if (!link_ || core_.happens(core_.faults.secure_hangs_ppm)) return;
  errc code = errc::unspecified;
  std::string_view note;
  if (core_.happens(core_.faults.secure_fails_ppm)) {
    bool const expired = core_.random.chance(1, 3);
    code = expired ? errc::tls_untrusted : errc::tls_failed;
    note = expired ? "certificate has expired" : "the peer ended the handshake";
  }
  core_.at(core_.now() + 4 * core_.latency(),
           [link = link_, d = std::move(done), code, note] { link->secured(d, code, note); });
}

void sim_transport::async_read_some(asio::mutable_buffer buffer, io_handler done) {
  if (!link_) return;
  link_->read_buffer = buffer;
  link_->reader = std::move(done);
  link_->serve();
}

void sim_transport::async_write_some(asio::const_buffer buffer, io_handler done) {
  if (!link_) return;
  link_->write_buffer = buffer;
  link_->writer = std::move(done);
  link_->take_write();
}

void sim_transport::close() noexcept {
  if (!link_ || link_->closed) return;
  auto const link = std::exchange(link_, nullptr);
  link->closed = true;
  --core_.open_links;
  link->reader = nullptr;
  link->writer = nullptr;
  // What was written before still arrives; then the server sees the end.
  core_.at(link->slot(link->up_free, {}), [link] {
    if (link->session == 0 || link->host.links.erase(link->session) == 0) return;
    if (!link->swallowed()) link->host.server.on_closed(link->session, link->core.now());
    link->core.pump(link->host);
  });
}

}  // namespace redoubt::testing
