// SPDX-License-Identifier: BSL-1.0
//
// This library: one client with the options it has by default, so every call has its deadline.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <redoubt/client.hpp>

#include "peer.hpp"
#include "peer_redoubt.hpp"

namespace bench {
namespace {

namespace asio = boost::asio;

void judge(run_meter& meter, redoubt::result<redoubt::reply> const& r, std::size_t i) {
  judge_redoubt(meter, r, i);
}
void judge(run_meter& meter, redoubt::replies const& all, std::size_t first) {
  for (auto const& one : all) {
    judge_redoubt(meter, one, first);
    if (++first == meter.of().keys) first = 0;
  }
}

/// Both ways of use on one thread, each with a client of its own.
class redoubt_peer : public peer {
 public:
  explicit redoubt_peer(int port) : client_(context_, options_for(port)) {
    // Its call ends by a deadline that a busy machine may miss: what counts is that there is a connection.
    std::string why;
    for (int tries = 0; tries < 50 && !connected_; ++tries) {
      client_.async_call(redoubt::command("PING"), {}, [this, &why](redoubt::result<redoubt::reply> r) {
        connected_ = r.has_value();
        if (!r) why = r.error().message();
        context_.stop();
      });
      context_.restart();
      context_.run();
    }
    if (!connected_) throw std::runtime_error(why);
  }

  sample run(cell const& what, double seconds) final {
    run_meter meter(what, seconds);
    meter_ = &meter;
    open_ = what.in_flight;
    context_.restart();
    for (std::size_t i = 0; i < what.in_flight; ++i) begin();
    context_.run();
    return meter.finish();
  }

 protected:
  virtual void begin() = 0;

  [[nodiscard]] run_meter& meter() const noexcept { return *meter_; }
  [[nodiscard]] redoubt::client& client() noexcept { return client_; }
  [[nodiscard]] asio::io_context& context() noexcept { return context_; }
  [[nodiscard]] bool batches() const noexcept { return meter_->of().what == shape::batch; }
  /// The commands from key `first` on.
  [[nodiscard]] redoubt::pipeline batch_for(std::size_t first) {
    redoubt::pipeline out;
    out.add(command_for(*meter_, first));
    while (out.size() < batch_size) out.add(command_for(*meter_, meter_->next_key()));
    return out;
  }
  void end() {
    if (--open_ == 0) context_.stop();
  }

 private:
  asio::io_context context_{1};
  redoubt::client client_;
  bool connected_ = false;
  run_meter* meter_ = nullptr;
  std::size_t open_ = 0;
};

class callbacks final : public redoubt_peer {
 public:
  using redoubt_peer::redoubt_peer;
  [[nodiscard]] std::string_view name() const override { return "redoubt"; }
  [[nodiscard]] std::string_view about() const override {
    return "async_call with a callback, one connection, one thread; default limits: 150 ms for every call";
  }

 private:
  void begin() override {
    auto const i = meter().next_key();
    meter().call_begins();
    auto done = [this, i](auto r) {
      meter().call_ends();
      judge(meter(), r, i);
      if (meter().over()) return end();
      begin();
    };
    if (batches()) {
      client().async_pipeline(batch_for(i), {}, std::move(done));
    } else {
      client().async_call(command_for(meter(), i), {}, std::move(done));
    }
  }
};

class coroutines final : public redoubt_peer {
 public:
  using redoubt_peer::redoubt_peer;
  [[nodiscard]] std::string_view name() const override { return "redoubt-coroutines"; }
  [[nodiscard]] std::string_view about() const override {
    return "the same, co_await async_call in as many coroutines as commands are in flight";
  }

 private:
  void begin() override { asio::co_spawn(context(), work(), asio::detached); }

  asio::awaitable<void> work() {
    while (!meter().over()) {
      auto const i = meter().next_key();
      meter().call_begins();
      if (batches()) {
        auto const all = co_await client().async_pipeline(batch_for(i));
        meter().call_ends();
        judge(meter(), all, i);
        continue;
      }
      auto const r = co_await client().async_call(command_for(meter(), i));
      meter().call_ends();
      judge_redoubt(meter(), r, i);
    }
    end();
  }
};

}  // namespace

redoubt::client_options options_for(int port) {
  redoubt::client_options out;
  out.address.port = static_cast<std::uint16_t>(port);
  return out;
}

redoubt::command command_for(run_meter const& meter, std::size_t i) {
  switch (meter.of().what) {
    case shape::set: return redoubt::command("SET", meter.key(i), meter.value(i));
    case shape::range: return redoubt::command("LRANGE", meter.key(i), 0, -1);
    default: return redoubt::command("GET", meter.key(i));
  }
}

void judge_redoubt(run_meter& meter, redoubt::result<redoubt::reply> const& r, std::size_t i) {
  auto const expected = meter.of().what;
  if (!r) {
    meter.failed();
  } else if (expected == shape::set && r->is_status()) {
    meter.acknowledged(r->as_string());
  } else if (expected == shape::range && r->is_array()) {
    auto const& elements = r->as_array();
    meter.answered_list(elements.size(), i, [&](std::size_t j) { return elements[j].as_string(); });
  } else if ((expected == shape::get || expected == shape::batch) && r->is_string()) {
    meter.answered(r->as_string(), i);
  } else {
    meter.answered_otherwise();
  }
}

void add_redoubt(peer_list& peers, int port) {
  peers.push_back(std::make_unique<callbacks>(port));
  peers.push_back(std::make_unique<coroutines>(port));
}

}  // namespace bench
