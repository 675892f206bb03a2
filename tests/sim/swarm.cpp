// SPDX-License-Identifier: BSL-1.0
#include "swarm.hpp"

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <redoubt/client.hpp>
#include <redoubt/testing/world.hpp>

namespace swarm {
namespace {

using namespace redoubt;
using namespace std::chrono_literals;
namespace asio = boost::asio;

/// Gives the password at once, late, never, or not at all, until it is told to behave.
class unsteady_provider final : public credentials_provider {
 public:
  unsteady_provider(testing::world& world, random_source& random) : world_(world), random_(random) {}

  void get(reply done) override {
    switch (steady ? 0 : random_.below(16)) {
      case 1:
      case 2: {
        auto const when = world_.now() + duration(static_cast<duration::rep>(random_.below(400'000'000)));
        return world_.at(when, [d = std::move(done)] { d(credentials{{}, "word"}); });
      }
      case 3: return done(credentials{{}, "wrong"});
      case 4: return kept_.push_back(std::move(done));
      case 5: throw std::runtime_error("no credentials");
      default: return done(credentials{{}, "word"});
    }
  }

  bool steady = false;

 private:
  testing::world& world_;
  random_source& random_;
  std::vector<reply> kept_;
};

/// One call of the run: what was asked, what came back. Every call has a key and a value of its own, so a
/// reply that belongs to another call cannot go unnoticed.
struct asked {
  enum class kind { set, get, incr, pipeline, transaction, eval } what = kind::set;
  std::string key;
  std::string value;
  time_point started{};
  time_point limit{};  // the moment by which it must have ended
  int completions = 0;
  std::optional<failure> error;
  bool done = false;
  bool inside_initiation = false;
  asio::cancellation_signal cancel;
  bool cancelled = false;
};

class run_of_seed {
 public:
  explicit run_of_seed(std::uint64_t seed)
      : world_(seed),
        random_(seed * 7919 + 1),
        provider_(std::make_shared<unsteady_provider>(world_, random_)) {}

  outcome go() {
    world_.redis().server().set("preset", "preset-value", world_.now());
    client_options options{.url = "redis://redis:6379", .key_prefix = "s:"};
    options.timeouts = {.connect = 100ms, .attempt = 100ms, .call = 150ms};
    options.bounds.in_flight = random_.chance(1, 2) ? 1024 : 16;
    options.bounds.late_replies = random_.chance(1, 2) ? 4096 : 8;
    options.connections = random_.chance(1, 4) ? 3 : 1;
    if (random_.chance(1, 4)) options.url = "rediss://redis:6379";
    if (random_.chance(1, 4)) {
      options.credentials = provider_;
      world_.redis()->require_password({}, "word");
    }
    in_flight_max_ = options.bounds.in_flight;
    client_ = std::make_unique<client>(world_.get_executor(), options);

    world_.network() = testing::draw_faults(random_);
    auto const calls = 20 + random_.below(60);
    for (std::uint64_t i = 0; i < calls; ++i) {
      world_.at(world_.now() + duration(static_cast<duration::rep>(random_.below(3'000'000'000))),
                [this] { start_one(); });
    }
    plan_outages();
    world_.at(end_of_faults_ + 1ms, [] {});
    step_until([this] { return world_.now() > end_of_faults_ && all_done(); }, 20s, "calls that never end");

    heal();
    recover();
    check_server();
    shut_down();
    out_.hash = world_.trace_hash();
    return std::move(out_);
  }

 private:
  void broken(std::string text) {
    if (out_.broken.size() < 10) out_.broken.push_back(std::move(text));
  }

  void plan_outages() {
    auto const start = world_.now();
    end_of_faults_ = start + 3s;
    auto const when = [&] {
      return start + duration(static_cast<duration::rep>(random_.below(3'000'000'000)));
    };
    auto& redis = world_.redis();
    if (random_.chance(1, 2)) {
      auto const t = when();
      world_.at(t, [&redis] { redis.pause(); });
      world_.at(t + duration(static_cast<duration::rep>(random_.below(2'000'000'000))),
                [&redis] { redis.resume(); });
    }
    if (random_.chance(1, 3)) {
      auto const t = when();
      world_.at(t, [this, &redis] {
        redis.kill();
        killed_ = true;
      });
      world_.at(t + duration(static_cast<duration::rep>(random_.below(1'000'000'000))),
                [&redis] { redis.restart(); });
    }
    if (random_.chance(1, 4)) {
      auto const t = when();
      world_.at(t, [&redis] { redis.become_replica(); });
      world_.at(t + 500ms, [&redis] { redis.become_primary(); });
    }
    if (random_.chance(1, 4)) {
      auto const t = when();
      world_.at(t, [&redis] { redis.fill_memory(); });
      world_.at(t + 500ms, [&redis] { redis.free_memory(); });
    }
    if (random_.chance(1, 4)) world_.at(when(), [&redis] { redis.flush_scripts(); });
    if (random_.chance(1, 4)) world_.at(when(), [&redis] { redis.pause_writes(300ms); });
    using fault = testing::fake_server::fault;
    for (auto const kind :
         {fault::kind::delay, fault::kind::drop_reply, fault::kind::cut, fault::kind::silent,
          fault::kind::reset_before_execution, fault::kind::reset_after_execution}) {
      if (!random_.chance(1, 3)) continue;
      redis->inject({.what = kind,
                     .delay = duration(static_cast<duration::rep>(random_.below(400'000'000))),
                     .cut_after = random_.below(8),
                     .skip = random_.below(30),
                     .times = 1 + random_.below(3)});
    }
  }

  void start_one() {
    auto call = std::make_shared<asked>();
    auto const number = calls_.size();
    calls_.push_back(call);
    ++out_.calls;
    call->what = static_cast<asked::kind>(random_.below(6));
    call->key = "call:" + std::to_string(number);
    call->value = "value-of-" + std::to_string(number);
    call->started = world_.now();
    call_options options;
    duration limit = 150ms;
    if (random_.chance(1, 4)) {
      limit = duration(static_cast<duration::rep>(random_.below(300'000'000)));
      options.budget = limit;
    }
    call->limit = call->started + limit;
    if (random_.chance(1, 6)) {
      auto const when = world_.now() + duration(static_cast<duration::rep>(random_.below(150'000'000)));
      world_.at(when, [this, call] {
        if (call->done) return;
        call->cancelled = true;
        call->limit = world_.now();
        call->cancel.emit(asio::cancellation_type::terminal);
      });
    }
    call->inside_initiation = true;
    send(call, options);
    call->inside_initiation = false;
  }

  void send(std::shared_ptr<asked> const& call, call_options options) {
    auto const slot = call->cancel.slot();
    auto const single = [&] {
      return asio::bind_cancellation_slot(slot,
                                          [this, call](result<reply> r) { ended(*call, std::move(r)); });
    };
    auto const key = "s:" + call->key;
    switch (call->what) {
      case asked::kind::set: client_->async_call(command("SET", key, call->value), options, single()); break;
      case asked::kind::get:
        client_->async_call(command("GET", "preset", call->key), options, single());
        break;
      case asked::kind::incr: client_->async_call(command("INCR", key), options, single()); break;
      case asked::kind::pipeline:
        client_->async_pipeline(
            pipeline(command("SET", key, call->value), command("GET", key), command("ECHO", call->value)),
            options,
            asio::bind_cancellation_slot(slot, [this, call](replies r) { ended(*call, std::move(r)); }));
        break;
      case asked::kind::transaction:
        client_->async_transaction(transaction(command("SET", key, call->value), command("GET", key)),
                                   options,
                                   asio::bind_cancellation_slot(slot, [this, call](result<replies> r) {
                                     ended(*call, std::move(r));
                                   }));
        break;
      case asked::kind::eval:
        client_->async_eval(append_, keys(call->key), args(call->value), options, single());
        break;
    }
  }

  /// Common to every completion.
  bool completed(asked& call) {
    ++call.completions;
    if (call.completions > 1) broken(call.key + " completed more than once");
    if (call.inside_initiation) broken(call.key + " completed inside its initiating call");
    call.done = true;
    // One tick of the wheel; a cancelled call ends in the same instant.
    if (world_.now() > call.limit + 1ms) broken(call.key + " ended late");
    return call.completions == 1;
  }

  void failed(asked& call, failure const& f) {
    call.error = f;
    (f.effect == effect::none ? out_.not_executed : out_.unknown) += 1;
    if (f.code == errc::unspecified) broken(call.key + " failed without a code");
    if (f.code == errc::cancelled && !call.cancelled) broken(call.key + " was cancelled by nobody");
    if (f.code == errc::protocol_error) broken(call.key + ": " + f.message());
  }

  void ended(asked& call, result<reply> r) {
    if (!completed(call)) return;
    if (!r) {
      // GET takes one argument: its error must reach its own caller, and nobody else.
      if (call.what == asked::kind::get && r.error().server == server_errc::err) {
        ++out_.answered;
        return;
      }
      if (r.error().server == server_errc::err) broken(call.key + " got another call's error");
      return failed(call, r.error());
    }
    ++out_.answered;
    if (call.what == asked::kind::set && r->as_string() != "OK")
      broken(call.key + ": SET got a foreign reply");
    if (call.what == asked::kind::get) broken(call.key + ": a wrong GET was answered");
    if (call.what == asked::kind::incr && r->as_integer() != 1)
      broken(call.key + ": INCR ran more than once");
    if (call.what == asked::kind::eval && r->as_string() != call.value)
      broken(call.key + ": EVAL got a foreign reply");
  }

  void ended(asked& call, replies r) {
    if (!completed(call)) return;
    if (r.size() != 3) return broken(call.key + ": a pipeline of 3 got " + std::to_string(r.size()));
    if (!r[0] || !r[1] || !r[2]) {
      // What counts for the oracle on effects is the SET.
      if (!r[0]) return failed(call, r[0].error());
      call.error.reset();
    }
    ++out_.answered;
    if (r[0] && r[0]->as_string() != "OK") broken(call.key + ": SET in a pipeline got a foreign reply");
    if (r[1] && !r[1]->is_nil() && r[1]->as_string() != call.value)
      broken(call.key + ": GET in a pipeline got a foreign reply");
    if (r[2] && r[2]->as_string() != call.value) broken(call.key + ": ECHO got a foreign reply");
  }

  void ended(asked& call, result<replies> r) {
    if (!completed(call)) return;
    if (!r) return failed(call, r.error());
    ++out_.answered;
    if (r->size() != 2) return broken(call.key + ": a transaction of 2 got " + std::to_string(r->size()));
    if (!(*r)[0] || (*r)[0]->as_string() != "OK")
      broken(call.key + ": SET in a transaction got a foreign reply");
    if (!(*r)[1] || (*r)[1]->as_string() != call.value)
      broken(call.key + ": GET in a transaction got a foreign reply");
  }

  [[nodiscard]] bool all_done() const {
    for (auto const& call : calls_) {
      if (!call->done) return false;
    }
    return true;
  }

  /// After each step: nobody waits past his limit, no bound is exceeded.
  void check_step() {
    for (auto const& call : calls_) {
      if (!call->done && world_.now() > call->limit + 2ms) broken(call->key + " still waits after its limit");
    }
    auto const s = client_->snapshot();
    if (s.in_flight > in_flight_max_) broken("more calls under way than the bound");
  }

  template <class Done>
  void step_until(Done done, duration limit, std::string const& what) {
    auto const end = world_.now() + limit;
    while (!done()) {
      if (world_.now() > end) return broken(what);
      if (!world_.step()) {
        if (!done()) broken(what + " (nothing left to happen)");
        return;
      }
      if (out_.broken.size() < 10) check_step();
    }
  }

  void heal() {
    world_.network() = {};
    provider_->steady = true;
    auto& redis = world_.redis();
    redis->clear_faults();
    redis.resume();
    redis.become_primary();
    redis.free_memory();
    if (!redis->accepts()) redis.restart();
  }

  /// Faults have stopped: a fresh call must succeed soon.
  void recover() {
    auto const start = world_.now();
    bool ok = false;
    while (!ok && world_.now() - start < 2500ms) {
      ok = world_.run([](client& c) -> asio::awaitable<bool> {
        auto const r = co_await c.async_call(command("PING"));
        co_return r.has_value();
      }(*client_));
      if (!ok) world_.run_for(20ms);
    }
    // Worst case: a swallowed connection is noticed after the stall limit, the next one is made after the
    // longest pause.
    if (!ok) broken("no call succeeded within 2.5 s after the faults had stopped");
  }

  /// What the server saw against what the callers were told.
  void check_server() {
    std::map<std::string, int> seen;
    for (auto const& r : world_.redis()->log()) {
      auto const& a = r.arguments;
      if (a.empty()) continue;
      if ((a[0] == "SET" || a[0] == "INCR") && a.size() > 1) ++seen[a[1]];
      if (a[0] == "EVAL" || (a[0] == "EVALSHA" && r.executed)) ++seen[a[3]];
    }
    for (auto const& call : calls_) {
      auto const times = seen["s:" + call->key];
      if (times > 1 && call->what != asked::kind::eval) broken(call->key + " was sent more than once");
      if (call->what == asked::kind::get || call->what == asked::kind::eval) continue;
      bool const refused_by_server = call->error && call->error->server != server_errc::none;
      if (call->error && call->error->effect == effect::none && !refused_by_server && times != 0) {
        broken(call->key +
               " reached the server although its caller was told that it had not: " + call->error->message());
      }
    }
  }

  void shut_down() {
    out_.discarded = client_->snapshot().discarded_replies;
    world_.run([](client& c) -> asio::awaitable<void> { co_await c.async_close(50ms); }(*client_), 100ms);
    auto const s = client_->snapshot();
    if (s.in_flight != 0 || s.queued_bytes != 0) broken("something is still counted after close");
    if (world_.open_connections() != 0) broken("a connection is open after close");
    client_.reset();
  }

  testing::world world_;
  random_source random_;
  script append_{"redis.call('APPEND', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])"};
  std::shared_ptr<unsteady_provider> provider_;
  std::unique_ptr<client> client_;
  std::vector<std::shared_ptr<asked>> calls_;
  std::size_t in_flight_max_ = 0;
  time_point end_of_faults_{};
  bool killed_ = false;
  outcome out_;
};

}  // namespace

outcome run(std::uint64_t seed) { return run_of_seed(seed).go(); }

}  // namespace swarm
