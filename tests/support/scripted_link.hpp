// SPDX-License-Identifier: BSL-1.0
//
// A connection core with neither socket nor clock: the test plays the server, the network and time, and sees
// every action the core asks for. Each step checks the core's invariants.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <redoubt/net/connection_core.hpp>
#include <redoubt/resp/command.hpp>

namespace test {

/// What became of a call.
struct outcome {
  int ends = 0;
  bool discarded = false;
  redoubt::time_point at{};
  std::optional<redoubt::failure> error;
  redoubt::reply value;
  std::vector<redoubt::reply> values;

  [[nodiscard]] bool ended() const noexcept { return ends > 0; }
  [[nodiscard]] redoubt::failure const& why() const { return error.value(); }
};

using ticket = std::shared_ptr<outcome>;

/// What the core asked for.
struct port_action {
  enum class kind { resolve, connect, secure, ask, read, write, drop } what;
  std::uint64_t epoch = 0;
  std::string bytes;
};

/// An event, with a copy of its cause.
struct seen_event {
  redoubt::event_kind kind{};
  std::optional<redoubt::failure> cause;
};

/// What a sink that asks for calls was told of one.
struct told_call {
  redoubt::event_kind kind{};
  redoubt::errc code{};
  redoubt::call_report report;
};

class scripted_link final : public redoubt::detail::link_port, public redoubt::event_sink {
  class recorded_call final : public redoubt::detail::pending_call {
   public:
    recorded_call(ticket t, scripted_link& l) : out(std::move(t)), link(l) {}
    void deliver() override {
      ++out->ends;
      out->at = link.time;
      out->error = std::move(error);
      out->value = std::move(value);
      out->values = std::move(values);
      delete this;
    }
    void discard() noexcept override {
      out->discarded = true;
      delete this;
    }
    ticket out;
    scripted_link& link;
  };

 public:
  using action = port_action::kind;

  /// `wants`: wants to be told of every call.
  explicit scripted_link(redoubt::client_options o = {}, std::uint64_t seed = 1, bool wants = false)
      : asks(wants),
        options(prepared(std::move(o), this)),
        gate(std::make_shared<redoubt::detail::load_gate>(options.bounds.in_flight,
                                                          options.bounds.queued_bytes)),
        core(std::make_unique<redoubt::detail::connection_core>(options, *this, gate, seed)) {}

  redoubt::time_point time{std::chrono::hours(1)};
  bool const asks;
  redoubt::client_options options;
  std::shared_ptr<redoubt::detail::load_gate> gate;
  std::vector<port_action> log;  ///< Everything the core asked for.
  std::string sent;      ///< Every byte of calls that was handed over for writing, all connections together.
  std::size_t room = 0;  ///< So many bytes are written at once; what goes beyond it waits for `written()`.
  std::size_t sent_at_drop = 0;  ///< How much of it belongs to connections that have ended.
  std::vector<seen_event> events;
  std::vector<told_call> calls_told;
  std::optional<redoubt::time_point> armed;
  std::unique_ptr<redoubt::detail::connection_core> core;

  // --- callers ---

  struct how {
    std::optional<redoubt::duration> budget{};
    redoubt::deadline by{};
    std::uint64_t cancel_key = 0;
    std::uint32_t replies = 1;
  };

  /// A call, started now, as the client starts it. Empty when the client's bounds refuse it.
  ticket call(redoubt::command const& c, how h) {
    auto t = leave(c, h);
    if (t) wake();
    return t;
  }
  ticket call(redoubt::command const& c) { return call(c, how{}); }
  ticket get(std::string_view key) { return call(redoubt::command("GET", key)); }

  /// The same without waking the connection up: another thread has just left it.
  ticket leave(redoubt::command const& c, how h) {
    auto t = std::make_shared<outcome>();
    auto* p = new recorded_call(t, *this);
    p->started = time;
    p->own_budget = h.budget.has_value();
    p->by = earlier(
        h.by, redoubt::deadline(redoubt::saturating_add(time, h.budget.value_or(options.timeouts.call))));
    p->name = redoubt::command_name(c.name());
    p->runs_script = redoubt::runs_script(c.name());
    p->bytes.append(c.wire());
    p->replies = h.replies;
    p->cancel_key = h.cancel_key;
    if (!gate->enter(p->bytes.size())) {
      p->discard();
      return nullptr;
    }
    p->charged_bytes = p->bytes.size();
    must_wake_ = core->submit(p) || must_wake_;
    return t;
  }

  void wake() {
    if (!std::exchange(must_wake_, false)) return;
    core->on_wake();
    checked();
  }

  void cancel(std::uint64_t key) {
    core->cancel(key);
    checked();
  }

  // --- the network ---

  [[nodiscard]] port_action const* last(action what) const {
    auto const found =
        std::find_if(log.rbegin(), log.rend(), [&](port_action const& a) { return a.what == what; });
    return found == log.rend() ? nullptr : &*found;
  }
  [[nodiscard]] std::size_t count(action what) const {
    return static_cast<std::size_t>(
        std::count_if(log.begin(), log.end(), [&](port_action const& a) { return a.what == what; }));
  }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

  void resolved() {
    input([&](auto& c) { c.on_resolved(epoch_); });
  }
  void failed(redoubt::errc code = redoubt::errc::connection_refused, std::string_view note = {}) {
    input([&](auto& c) { c.on_attempt_failed(epoch_, code, note); });
  }
  void secured() {
    input([&](auto& c) { c.on_secured(epoch_); });
  }
  void credentials(std::optional<redoubt::credentials> const& who) {
    input([&](auto& c) { c.on_credentials(epoch_, who); });
  }
  void connected() {
    input([&](auto& c) { c.on_connected(epoch_); });
  }
  /// The system takes `bytes` more of the write that is under way.
  void written(std::size_t bytes) {
    ASSERT_LE(bytes, unwritten_);
    writing_ = false;
    unwritten_ -= bytes;
    input([&](auto& c) { c.on_written(epoch_, bytes); });
  }
  void written() { written(unwritten_); }
  /// Bytes come from the server.
  void receive(std::string_view bytes) {
    ASSERT_TRUE(reading_) << "nobody is reading";
    reading_ = false;
    input([&](auto& c) { c.on_read(epoch_, bytes); });
  }
  /// The server ends the connection.
  void broken(redoubt::errc code = redoubt::errc::connection_lost, std::string_view note = {}) {
    input([&](auto& c) { c.on_broken(epoch_, code, note); });
  }

  [[nodiscard]] std::size_t unwritten() const noexcept { return unwritten_; }
  [[nodiscard]] bool writing() const noexcept { return writing_; }
  [[nodiscard]] bool connected_now() const noexcept { return reading_; }

  /// From nothing to ready; a call must be waiting.
  void make_ready(std::string_view greeting = "+OK\r\n+PONG\r\n") {
    resolved();
    connected();
    written();
    receive(greeting);
    ASSERT_EQ(core->snapshot().state, redoubt::link_state::ready);
  }
  /// Ready, with nothing under way.
  void make_idle() {
    auto const t = get("warm-up");
    make_ready();
    written();
    receive("$-1\r\n");
    ASSERT_TRUE(t->ended());
    log.clear();
    sent.clear();
    events.clear();
  }
  /// Writes what is under way and answers it.
  void answer(std::string_view bytes) {
    if (writing_) written();
    receive(bytes);
  }

  // --- time ---

  /// Moves time; the timer fires when it was asked to.
  void advance(redoubt::duration d) {
    auto const end = time + d;
    while (armed && *armed <= end) {
      ASSERT_LT(++timers_in_a_row_, 10'000) << "a hot loop of timers";
      time = std::max(time, *armed);
      armed.reset();
      core->on_timer();
      checked();
    }
    timers_in_a_row_ = 0;
    time = end;
  }
  /// Moves time without serving the timer: a thread that is busy elsewhere.
  void busy(redoubt::duration d) { time += d; }

  void close(redoubt::deadline by) {
    input([&](auto& c) { c.close(by); });
  }

  /// Nothing is left: no call, no byte, no timer.
  void expect_quiet() const {
    EXPECT_EQ(gate->calls(), 0u);
    EXPECT_EQ(gate->bytes(), 0u);
    auto const s = core->snapshot();
    EXPECT_EQ(s.waiting, 0u);
    EXPECT_EQ(s.owed, 0u);
    expect_sum();
  }
  void expect_sum() const {
    auto const s = core->snapshot();
    EXPECT_EQ(s.started,
              s.answered + s.expired + s.cancelled + s.rejected + s.failed_calls + s.waiting + s.owed);
  }

  // --- link_port ---
  [[nodiscard]] redoubt::time_point now() const noexcept override { return time; }
  void resolve(std::uint64_t epoch) override { note({action::resolve, epoch, {}}); }
  void connect(std::uint64_t epoch, redoubt::time_point) override { note({action::connect, epoch, {}}); }
  void secure(std::uint64_t epoch) override { note({action::secure, epoch, {}}); }
  void ask_credentials(std::uint64_t epoch) override { note({action::ask, epoch, {}}); }
  void read(std::uint64_t epoch) override {
    EXPECT_FALSE(std::exchange(reading_, true)) << "two reads at once";
    note({action::read, epoch, {}});
  }
  std::size_t write(std::uint64_t epoch, std::string_view bytes) override {
    EXPECT_FALSE(std::exchange(writing_, true)) << "two writes at once";
    EXPECT_FALSE(bytes.empty());
    // The first write of a connection is the handshake. What is left of a write is offered again, and is not
    // new.
    if (unwritten_ == 0 && greeted_) sent += bytes;
    greeted_ = true;
    unwritten_ = bytes.size();
    note({action::write, epoch, std::string(bytes)});
    auto const n = std::min(room, bytes.size());
    if (n == 0) return 0;
    writing_ = false;
    room -= n;
    unwritten_ -= n;
    return n;
  }
  void drop() noexcept override {
    reading_ = writing_ = greeted_ = false;
    unwritten_ = 0;
    sent_at_drop = sent.size();
    log.push_back({action::drop, 0, {}});
  }
  void arm(redoubt::time_point when) override { armed = when; }
  void disarm() noexcept override { armed.reset(); }
  void hand_over(redoubt::detail::call_list done) override {
    while (auto* c = done.pop()) c->deliver();
  }

  // --- event_sink ---
  void on(redoubt::event const& e) noexcept override {
    if (e.call) {
      calls_told.push_back({e.kind, e.cause ? e.cause->code : redoubt::errc::unspecified, *e.call});
      return;
    }
    events.push_back({e.kind, e.cause ? std::optional(*e.cause) : std::nullopt});
  }
  [[nodiscard]] bool wants_calls() const noexcept override { return asks; }

 private:
  static redoubt::client_options prepared(redoubt::client_options o, redoubt::event_sink* sink) {
    o.events = sink;
    return o.resolved().value();
  }

  template <class Input>
  void input(Input what) {
    what(*core);
    checked();
  }

  void note(port_action a) {
    EXPECT_GE(a.epoch, epoch_) << "an action of an epoch that has ended";
    epoch_ = a.epoch;
    log.push_back(std::move(a));
  }

  void checked() const {
    ASSERT_TRUE(core->check());
    expect_sum();
    // Whoever waits has a timer, so no wait can be for ever.
    auto const s = core->snapshot();
    bool const somebody_waits = s.waiting > 0 || s.owed > 0;
    ASSERT_TRUE(armed.has_value() || !somebody_waits);
  }

  std::uint64_t epoch_ = 0;
  bool must_wake_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool greeted_ = false;
  std::size_t unwritten_ = 0;
  int timers_in_a_row_ = 0;
};

}  // namespace test
