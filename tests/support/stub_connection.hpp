// SPDX-License-Identifier: BSL-1.0
//
// The real client over connections that are stubs: a test sees what is handed over to them and says how it
// ends. Neither socket nor machine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <redoubt/client.hpp>
#include <redoubt/net/connection.hpp>
#include <redoubt/resp/decode.hpp>

namespace test {

namespace asio = boost::asio;
using redoubt::call_options;
using redoubt::client;
using redoubt::client_options;
using redoubt::command;
using redoubt::deadline;
using redoubt::failure;
using redoubt::pipeline;
using redoubt::reply;
using redoubt::result;
using redoubt::transaction;
using redoubt::detail::call_list;
using redoubt::detail::load_gate;
using redoubt::detail::pending_call;

/// A copy of what was handed over, which outlives the call.
struct handed_over {
  std::string wire;
  std::uint32_t replies;
  bool own_budget;
  redoubt::time_point started;
  deadline by;
};

class stub_connection final : public redoubt::detail::connection {
 public:
  stub_connection(asio::any_io_executor e, std::shared_ptr<load_gate> g)
      : executor_(std::move(e)),
        gate_(std::move(g)) {}
  ~stub_connection() override {
    for (auto* call : open) call->discard();
  }

  void submit(pending_call* call) override {
    seen.push_back({std::string(call->wire()), call->replies, call->own_budget, call->started, call->by});
    open.push_back(call);
  }
  void cancel(std::uint64_t key) override { cancelled.push_back(key); }
  void abandon() noexcept override {}
  void close(deadline, close_handler done) override {
    if (done) asio::post(executor_, std::move(done));
  }
  void list_pending(pending_handler done) override {
    asio::post(executor_, [d = std::move(done)] { d({}); });
  }
  void leave_to_parent() override {}
  [[nodiscard]] redoubt::connection_snapshot snapshot() const override { return {}; }

  /// Ends the oldest open call as a connection would.
  void end(std::vector<reply> replies, std::optional<failure> why = std::nullopt) {
    auto* call = open.front();
    open.erase(open.begin());
    if (why) {
      call->error = std::move(why);
      call->values = std::move(replies);
    } else if (call->replies == 1) {
      call->value = std::move(replies.at(0));
      if (call->value.is_error()) {
        call->error = redoubt::to_failure(call->value.as_error());
        if (call->runs_script) call->error->effect = redoubt::effect_inside_script(call->value.as_error());
        if (call->again()) {  // as connection_core does: still the same call, and still counted
          gate_->unqueue(std::exchange(call->charged_bytes, call->wire().size()));
          gate_->queue(call->charged_bytes);
          return submit(call);
        }
      }
    } else {
      call->values = std::move(replies);
    }
    gate_->unqueue(std::exchange(call->charged_bytes, 0));
    leave(*gate_);
    call_list done;
    done.push(call);
    asio::post(executor_, [e = executor_, d = std::move(done)]() mutable {
      redoubt::detail::deliver_all(e, std::move(d));
    });
  }

  std::vector<handed_over> seen;
  std::vector<pending_call*> open;
  std::vector<std::uint64_t> cancelled;

 private:
  template <class Gate>
  static void leave(Gate& g) {
    if constexpr (requires { g.leave(1); }) {
      g.leave(1);
    } else {
      g.leave();
    }
  }

  asio::any_io_executor executor_;
  std::shared_ptr<load_gate> gate_;
};

class stub_factory final : public redoubt::detail::connection_factory {
 public:
  stub_factory(asio::execution_context& context, std::vector<std::shared_ptr<stub_connection>>& made)
      : connection_factory(context),
        made_(made) {}
  std::vector<std::shared_ptr<redoubt::detail::connection>> make(
      asio::any_io_executor const& executor, client_options const& options,
      std::shared_ptr<load_gate> const& gate) override {
    for (std::uint32_t i = 0; i < options.connections; ++i) {
      made_.push_back(std::make_shared<stub_connection>(executor, gate));
    }
    return {made_.begin(), made_.end()};
  }

 private:
  std::vector<std::shared_ptr<stub_connection>>& made_;
};

struct client_rig {
  explicit client_rig(client_options o = {}) {
    asio::make_service<stub_factory>(io, made);
    c.emplace(io, std::move(o));
  }

  asio::io_context io;
  std::vector<std::shared_ptr<stub_connection>> made;
  std::optional<client> c;

  [[nodiscard]] stub_connection& to(std::size_t i = 0) { return *made.at(i); }
  void run() {
    do io.restart();
    while (io.poll() > 0);  // not run(): calls that are open count as work
  }

  template <class T>
  struct slot {
    std::optional<T> value;
    int ends = 0;
    [[nodiscard]] failure why() const { return value->error(); }
  };
  template <class T>
  using ticket = std::shared_ptr<slot<T>>;
  template <class T>
  static auto into(ticket<T> const& t) {
    return [t](T v) {
      t->value.emplace(std::move(v));
      ++t->ends;
    };
  }

  ticket<result<reply>> call(command cmd, call_options o = {}) {
    auto t = std::make_shared<slot<result<reply>>>();
    c->async_call(std::move(cmd), o, into(t));
    EXPECT_EQ(t->ends, 0) << "never inside the initiating call";
    return t;
  }
  ticket<redoubt::replies> send(pipeline p) {
    auto t = std::make_shared<slot<redoubt::replies>>();
    c->async_pipeline(std::move(p), {}, into(t));
    EXPECT_EQ(t->ends, 0);
    return t;
  }
  ticket<result<redoubt::replies>> send(transaction b) {
    auto t = std::make_shared<slot<result<redoubt::replies>>>();
    c->async_transaction(std::move(b), {}, into(t));
    EXPECT_EQ(t->ends, 0);
    return t;
  }
  ticket<result<reply>> eval(redoubt::script const& s, call_options o = {}) {
    auto t = std::make_shared<slot<result<reply>>>();
    c->async_eval(s, redoubt::keys("k"), redoubt::args("a"), o, into(t));
    EXPECT_EQ(t->ends, 0);
    return t;
  }
};

}  // namespace test
