// SPDX-License-Identifier: BSL-1.0
#include <redoubt/testing/fault_proxy.hpp>

#include <algorithm>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include "fault_proxy_link.hpp"

namespace redoubt::testing {

namespace asio = boost::asio;
using asio::ip::tcp;
using detail::proxy_link;

struct fault_proxy::impl {
  explicit impl(fault_proxy_options const& options)
      : server(asio::ip::make_address(options.server_address), options.server_port),
        port(options.port),
        seeds(options.seed) {
    listen();
    thread = std::thread([this] { io.run(); });
  }

  ~impl() {
    run([this] {
      acceptor.reset();
      for (auto const& link : links) link->close(true);
    });
    work.reset();
    io.stop();
    thread.join();
  }

  void listen() {
    tcp::endpoint const here(asio::ip::address_v4::loopback(), port);
    acceptor.emplace(io, tcp::v4());
    acceptor->set_option(asio::socket_base::reuse_address(true));
    acceptor->bind(here);
    acceptor->listen();
    // Kept for the next time, and not written then: other threads may be reading it.
    if (port == 0) port = acceptor->local_endpoint().port();
    accept();
  }

  void accept() {
    acceptor->async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || !acceptor || !acceptor->is_open()) return;
      if (!error) serve(std::move(socket));
      accept();
    });
  }

  void serve(tcp::socket socket) {
    ++counters.accepted;
    std::erase_if(links, [](auto const& link) { return !link->open(); });
    links.push_back(std::make_shared<proxy_link>(io, std::move(socket), faults, counters, seeds()));
    links.back()->start(server);
  }

  void apply() {
    if (faults.refuse) {
      acceptor.reset();
    } else if (!acceptor) {
      listen();
    }
    each([](proxy_link& link) { link.kick(); });
  }

  template <class What>
  void each(What what) {
    auto const all = links;  // ending one may end others' operations
    for (auto const& link : all) {
      if (link->open()) what(*link);
    }
  }

  template <class What>
  void run(What what) {
    std::promise<void> done;
    asio::post(io, [&] {
      try {
        what();
        done.set_value();
      } catch (...) {
        done.set_exception(std::current_exception());
      }
    });
    done.get_future().get();
  }

  tcp::endpoint server;
  std::uint16_t port;
  random_source seeds;
  proxy_faults faults;
  proxy_counters counters;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
  std::optional<tcp::acceptor> acceptor;
  std::vector<std::shared_ptr<proxy_link>> links;
  std::thread thread;
};

fault_proxy::fault_proxy(fault_proxy_options options) : impl_(std::make_unique<impl>(options)) {}
fault_proxy::~fault_proxy() = default;

std::uint16_t fault_proxy::port() const noexcept { return impl_->port; }

void fault_proxy::set(proxy_faults const& faults) {
  change([&](proxy_faults& now) { now = faults; });
}

void fault_proxy::change(std::function<void(proxy_faults&)> const& what) {
  impl_->run([&] {
    what(impl_->faults);
    impl_->apply();
  });
}

proxy_faults fault_proxy::faults() {
  proxy_faults out;
  impl_->run([&] { out = impl_->faults; });
  return out;
}

void fault_proxy::reset_connections() {
  impl_->run([this] { impl_->each([](proxy_link& link) { link.end(true); }); });
}

void fault_proxy::close_connections() {
  impl_->run([this] { impl_->each([](proxy_link& link) { link.end(false); }); });
}

void fault_proxy::freeze_connections() {
  impl_->run([this] { impl_->each([](proxy_link& link) { link.freeze(); }); });
}

proxy_counters fault_proxy::counters() {
  proxy_counters out;
  impl_->run([&] {
    out = impl_->counters;
    out.open = static_cast<std::uint64_t>(std::count_if(impl_->links.begin(), impl_->links.end(),
                                                        [](auto const& link) { return link->open(); }));
  });
  return out;
}

}  // namespace redoubt::testing
