// SPDX-License-Identifier: BSL-1.0
#include <redoubt/testing/loopback_server.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>

#include "loopback_connection.hpp"

namespace redoubt::testing {

namespace asio = boost::asio;
using asio::generic::stream_protocol;
using detail::loopback_connection;

struct loopback_server::impl {
  using acceptor = asio::basic_socket_acceptor<stream_protocol>;

  explicit impl(loopback_options o)
      : options(std::move(o)),
        server(options.server),
        wakeup(io.get_executor()) {
    listen();
    thread = std::thread([this] { io.run(); });
  }

  ~impl() {
    with([this](fake_server&, time_point) {
      for (auto const& [id, connection] : connections) connection->reset();
    });
    work.reset();
    io.stop();
    thread.join();
    if (!options.unix_path.empty()) ::unlink(options.unix_path.c_str());
  }

  void listen() {
    if (options.tcp) {
      asio::ip::tcp::endpoint const any(asio::ip::address_v4::loopback(), options.port);
      open(tcp, stream_protocol(asio::ip::tcp::v4()), any);
      stream_protocol::endpoint const bound = tcp->local_endpoint();
      asio::ip::tcp::endpoint chosen;
      std::copy_n(static_cast<char const*>(static_cast<void const*>(bound.data())), bound.size(),
                  static_cast<char*>(static_cast<void*>(chosen.data())));
      // Kept for a restart, and not written then: other threads may be reading it.
      if (options.port == 0) options.port = chosen.port();
    }
    if (!options.unix_path.empty()) {
      ::unlink(options.unix_path.c_str());
      open(local, stream_protocol(asio::local::stream_protocol()),
           asio::local::stream_protocol::endpoint(options.unix_path));
    }
  }

  void open(std::optional<acceptor>& place, stream_protocol protocol,
            stream_protocol::endpoint const& endpoint) {
    place.emplace(io, protocol);
    place->set_option(asio::socket_base::reuse_address(true));
    place->bind(endpoint);
    place->listen();
    accept(*place);
  }

  void accept(acceptor& from) {
    from.async_accept([this, &from](boost::system::error_code error, loopback_connection::socket socket) {
      if (error == asio::error::operation_aborted || !from.is_open()) return;
      if (!error) serve(std::move(socket));
      if (!backlog_full || &from != &*tcp) accept(from);
    });
  }

  void serve(loopback_connection::socket socket) {
    boost::system::error_code ignored;
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);  // means nothing to a unix socket
    socket.non_blocking(true, ignored);
    auto const now = redoubt::now(io.get_executor());
    auto const id = server.open(now);
    auto connection = std::make_shared<loopback_connection>(std::move(socket), id, manners);
    connection->on_input = [this](fake_server::session from, std::string_view bytes) { input(from, bytes); };
    connections.emplace(id, connection);
    pump();
    connection->read();
  }

  void input(fake_server::session from, std::string_view bytes) {
    auto const now = redoubt::now(io.get_executor());
    if (bytes.empty()) {
      server.on_closed(from, now);
      connections.erase(from);
    } else {
      server.on_bytes(from, bytes, now);
    }
    pump();
  }

  // After everything that may have changed the server: sends what it says and follows its state.
  void pump() {
    for (auto& out : server.take_output()) {
      auto const found = connections.find(out.to);
      if (found == connections.end()) continue;
      auto const connection = found->second;
      if (out.close || out.reset) connections.erase(found);
      connection->put(std::move(out));
    }
    bool const listening = (tcp && tcp->is_open()) || (local && local->is_open());
    if (!server.accepts() && listening) refuse();
    if (server.accepts() && !listening) listen();
    manners.reads = reads && !server.paused();
    for (auto const& [id, connection] : connections) connection->read();
    arm();
  }

  void refuse() {
    boost::system::error_code ignored;
    if (tcp) tcp->close(ignored);
    if (local) local->close(ignored);
    if (!options.unix_path.empty()) ::unlink(options.unix_path.c_str());
  }

  void arm() {
    auto const when = server.next_wakeup();
    if (when == armed) return;
    armed = when;
    wakeup.cancel();
    if (!when) return;
    wakeup.async_wait_until(*when, [this](boost::system::error_code error) {
      if (error) return;
      armed.reset();
      server.on_time(redoubt::now(io.get_executor()));
      pump();
    });
  }

  // Those that had connected before: to them the server is as it was.
  void accept_waiting() {
    tcp->non_blocking(true);
    for (;;) {
      loopback_connection::socket socket(io);
      boost::system::error_code error;
      tcp->accept(socket, error);
      if (error) return;
      serve(std::move(socket));
    }
  }

  void fill_backlog() {
    if (backlog_full || !tcp || !tcp->is_open()) return;
    backlog_full = true;
    tcp->cancel();
    accept_waiting();
    ::listen(tcp->native_handle(), 0);
    // A queue of length 0 holds one connection on Linux.
    filler.emplace(io);
    filler->async_connect(asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), options.port),
                          [](boost::system::error_code) {});
  }

  void drain_backlog() {
    if (!backlog_full) return;
    backlog_full = false;
    filler.reset();
    if (!tcp || !tcp->is_open()) return;
    ::listen(tcp->native_handle(), asio::socket_base::max_listen_connections);
    accept(*tcp);
  }

  void with(std::function<void(fake_server&, time_point)> const& what) {
    std::promise<void> done;
    asio::post(io, [&] {
      try {
        what(server, redoubt::now(io.get_executor()));
        pump();
        done.set_value();
      } catch (...) {
        done.set_exception(std::current_exception());
      }
    });
    done.get_future().get();
  }

  loopback_options options;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
  fake_server server;
  detail::loopback_manners manners;
  bool reads = true;
  bool backlog_full = false;
  timer wakeup;
  std::optional<time_point> armed;
  std::optional<acceptor> tcp;
  std::optional<acceptor> local;
  std::optional<asio::ip::tcp::socket> filler;
  std::map<fake_server::session, std::shared_ptr<loopback_connection>> connections;
  std::thread thread;
};

loopback_server::loopback_server(loopback_options options)
    : impl_(std::make_unique<impl>(std::move(options))) {}
loopback_server::~loopback_server() = default;

std::uint16_t loopback_server::port() const noexcept { return impl_->options.tcp ? impl_->options.port : 0; }
std::string const& loopback_server::unix_path() const noexcept { return impl_->options.unix_path; }

void loopback_server::with(std::function<void(fake_server&, time_point)> const& what) { impl_->with(what); }

void loopback_server::pause() {
  with([](fake_server& server, time_point) { server.pause(); });
}
void loopback_server::resume() {
  with([](fake_server& server, time_point now) { server.resume(now); });
}
void loopback_server::kill() {
  with([](fake_server& server, time_point) { server.kill(); });
}
void loopback_server::restart() {
  with([](fake_server& server, time_point now) { server.restart(now); });
}

void loopback_server::stop_reading() {
  with([this](fake_server&, time_point) { impl_->reads = false; });
}
void loopback_server::start_reading() {
  with([this](fake_server&, time_point) { impl_->reads = true; });
}

void loopback_server::drip(std::size_t bytes, duration every) {
  with([this, bytes, every](fake_server&, time_point) {
    impl_->manners.slow = detail::loopback_manners::drip{std::max<std::size_t>(bytes, 1), every};
  });
}
void loopback_server::stop_dripping() {
  with([this](fake_server&, time_point) { impl_->manners.slow.reset(); });
}

void loopback_server::fill_backlog() {
  with([this](fake_server&, time_point) { impl_->fill_backlog(); });
}
void loopback_server::drain_backlog() {
  with([this](fake_server&, time_point) { impl_->drain_backlog(); });
}

std::size_t loopback_server::connections() {
  std::size_t out = 0;
  with([this, &out](fake_server&, time_point) { out = impl_->connections.size(); });
  return out;
}

}  // namespace redoubt::testing
