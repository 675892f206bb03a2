// SPDX-License-Identifier: BSL-1.0
//
// Asks Redis whether it answers, reads and writes. A PING alone is green on a replica, on a full server and
// while writes are paused, when every write fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/async/run.hpp>
#include <redoubt/core/counter.hpp>
#include <redoubt/core/events.hpp>
#include <redoubt/core/required.hpp>
#include <redoubt/policy/probe_report.hpp>
#include <redoubt/policy/redis_client.hpp>

namespace redoubt {

/// Options of every `write_probe`.
struct write_probe_options {
  /// Source of its events. Default "write_probe".
  std::string name = "write_probe";
  /// The key that is read and overwritten, after the client's `key_prefix`. No default: it must be a key of
  /// its own that the application's user may write, with an unmistakable name such as "health:write".
  required<std::string> key;
  /// How long the key lives. Default 60 s. Range 1 ms .. 1 day.
  duration ttl = std::chrono::seconds(60);
  /// Bytes written. A server near its memory limit may take 2 bytes and refuse 100 000: take the size of what
  /// the application writes. Default 2. Range 1 .. 1 MiB.
  std::uint32_t payload = 2;
  /// Told when the answer changes; must outlive the probe. Default: nobody.
  event_sink* events = nullptr;

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// Numbers of a `write_probe`.
struct write_probe_snapshot {
  std::uint64_t requests = 0;  ///< `check` and `report` calls started.
  std::uint64_t probes = 0;    ///< Probes sent to Redis; the other requests shared one of them.
  std::uint64_t healthy = 0;   ///< Probes that found everything well.
  std::uint64_t failed = 0;    ///< Probes that did not.
};

/// PING, GET and SET with a life, sent together under one limit.
///
///     write_probe probe(redis, {.key = "health:write"});
///     bool const ready = co_await probe.check();
///
/// What it proves, and what not: at that moment this server read and wrote one small key. It does not test
/// scripts, large writes or every slot of a cluster (one key is one slot), and does not guarantee the next
/// request. The key lies in the application's keyspace, counts towards its memory and goes into the
/// replication stream.
///
/// Use it for readiness only where the request path writes, never for liveness: restarting a service does not
/// repair its Redis. Do not run it per request; concurrent checks share one probe, and `last()` is a reading
/// without I/O for metrics. It goes straight to the client, past every cache, breaker and fallback.
///
/// Nothing throws for anything Redis does; without an answer in time the answer is false. Thread-safe. Calls
/// in flight must not outlive the client; they may outlive the probe.
template <redis_client Client = client>
class write_probe {
 public:
  using options = write_probe_options;
  using snapshot_type = write_probe_snapshot;

  /// Throws `option_error` when an option is out of range.
  write_probe(Client& redis, options o)
      : state_(std::make_shared<state>(redis, (o.validate(), std::move(o)))) {}

  /// A probe in flight goes on without it, and is told to nobody.
  ~write_probe() { state_->silent.store(true, std::memory_order_relaxed); }

  write_probe(write_probe const&) = delete;
  write_probe& operator=(write_probe const&) = delete;

  /// True when Redis answered, read and wrote. Completion: `void(bool)`, on the token's executor, exactly
  /// once, never inside this call, and not later than `by`; without `by`, within `worst_case()`. Cancelled:
  /// false.
  template <class Token = asio::deferred_t>
  auto check(deadline by = {}, Token&& token = Token{}) {
    return async_run<bool>(
        state_->strand, [s = state_, by] { return s->check(s, by); }, std::forward<Token>(token));
  }

  /// Like `check`, with the three capabilities, the cause and the time. When `by` passes first, the report
  /// says `deadline_exceeded`, and the probe goes on for the others and for `last()`.
  template <class Token = asio::deferred_t>
  auto report(deadline by = {}, Token&& token = Token{}) {
    return async_run<probe_report>(
        state_->strand, [s = state_, by] { return s->report(s, by); }, std::forward<Token>(token));
  }

  /// One PING: true when Redis answered, be it with an error. It says nothing about reading or writing.
  /// Completion: `void(bool)`, as for `check`.
  template <class Token = asio::deferred_t>
  auto ping(deadline by = {}, Token&& token = Token{}) {
    return async_run<bool>(
        state_->strand, [s = state_, by] { return s->ping(s, by); }, std::forward<Token>(token));
  }

  /// The last reading with its time, without any I/O; empty before the first probe has ended.
  [[nodiscard]] std::optional<probe_report> last() const {
    std::scoped_lock const lock(state_->mutex);
    return state_->last;
  }

  /// The longest that `check`, `report` and `ping` can take without a deadline: one call.
  [[nodiscard]] duration worst_case() const { return state_->client.call_timeout(); }

  /// Numbers so far.
  [[nodiscard]] write_probe_snapshot snapshot() const noexcept;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

/// The probe in flight and its waiters live on the strand.
template <redis_client Client>
struct write_probe<Client>::state {
  state(Client& redis, options o)
      : client(redis),
        opts(std::move(o)),
        strand(asio::make_strand(asio::any_io_executor(redis.get_executor()))) {}

  static asio::awaitable<bool> check(std::shared_ptr<state> self, deadline by) {
    probe_report const r = co_await report(std::move(self), by);
    co_return r.healthy();
  }

  static asio::awaitable<probe_report> report(std::shared_ptr<state> self, deadline by);
  static asio::awaitable<bool> ping(std::shared_ptr<state> self, deadline by);
  static asio::awaitable<void> probe(std::shared_ptr<state> self);
  static asio::awaitable<probe_report> ask(std::shared_ptr<state> self);
  void settle(probe_report r);

  /// One probe that several callers wait for: each on its own timer, which the end of the probe cancels.
  struct flight {
    std::optional<probe_report> result;
    std::vector<timer*> waiters;
  };

  Client& client;
  options const opts;
  asio::any_io_executor const strand;
  std::shared_ptr<flight> current;  // on the strand
  detail::counter requests, probes, healthy, failed;
  std::atomic<bool> silent = false;  // the probe has gone, and its event sink perhaps

  std::mutex mutable mutex;
  std::optional<probe_report> last;  // under the mutex
};

template <redis_client Client>
asio::awaitable<probe_report> write_probe<Client>::state::report(std::shared_ptr<state> self, deadline by) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  self->requests.add();
  timer clock(self->strand);
  time_point const start = clock.now();
  deadline const limit = earlier(by, deadline(saturating_add(start, duration(self->client.call_timeout()))));

  probe_report out;
  out.cause.code = errc::deadline_exceeded;
  out.cause.effect = effect::none;  // as far as this caller is concerned, nothing was asked
  if (!limit.passed(start)) {
    if (!self->current) {
      self->current = std::make_shared<flight>();
      asio::co_spawn(self->strand, probe(self), asio::detached);
    }
    std::shared_ptr<flight> const shared = self->current;
    shared->waiters.push_back(&clock);
    boost::system::error_code ignored;  // time over, cancelled, or the probe has ended: the state says which
    co_await clock.async_wait_until(limit.at(), asio::redirect_error(asio::use_awaitable, ignored));
    std::erase(shared->waiters, &clock);
    if (shared->result) {
      out = *shared->result;
      co_return out;
    }
    asio::cancellation_state const cancelled = co_await asio::this_coro::cancellation_state;
    if (cancelled.cancelled() != asio::cancellation_type::none) out.cause.code = errc::cancelled;
  }
  out.at = clock.now();
  out.took = out.at - start;
  out.cause.elapsed = out.took;
  co_return out;
}

template <redis_client Client>
asio::awaitable<void> write_probe<Client>::state::probe(std::shared_ptr<state> self) {
  self->probes.add();
  asio::any_io_executor const executor = self->strand;
  time_point const start = now(executor);
  probe_report r;
  try {
    r = co_await ask(self);
  } catch (...) {  // out of memory; whoever waits must hear of it all the same
    r.cause.effect = effect::unknown;
  }
  r.at = now(executor);
  r.took = r.at - start;
  self->settle(std::move(r));
}

template <redis_client Client>
asio::awaitable<probe_report> write_probe<Client>::state::ask(std::shared_ptr<state> self) {
  std::string const key = std::string(self->client.key_prefix()) + self->opts.key.get();
  auto const life = std::chrono::duration_cast<std::chrono::milliseconds>(self->opts.ttl).count();
  std::string const payload(self->opts.payload, 'x');

  pipeline batch;
  batch.add(command("PING"));
  batch.add(command("GET", key));
  batch.add(command("SET", key, payload, "PX", life));
  call_options const call;
  std::vector<result<reply>> answers =
      co_await self->client.async_pipeline(std::move(batch), call, asio::use_awaitable);

  probe_report r = detail::judge_probe(answers);
  co_return r;
}

template <redis_client Client>
void write_probe<Client>::state::settle(probe_report r) {
  (r.healthy() ? healthy : failed).add();
  bool changed = true;
  {
    std::scoped_lock const lock(mutex);
    if (last) {
      changed = last->answers != r.answers || last->reads != r.reads || last->writes != r.writes;
    }
    last = r;
  }
  if (changed && opts.events != nullptr && !silent.load(std::memory_order_relaxed)) {
    failure const* const cause = r.healthy() ? nullptr : &r.cause;
    opts.events->on(event{.kind = event_kind::probe_changed, .source = opts.name, .cause = cause});
  }
  auto const shared = std::exchange(current, nullptr);
  shared->result = std::move(r);
  for (auto* waiter : shared->waiters) waiter->cancel();
}

template <redis_client Client>
asio::awaitable<bool> write_probe<Client>::state::ping(std::shared_ptr<state> self, deadline by) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  command ask("PING");
  call_options call;
  call.by = by;
  result<reply> const got = co_await self->client.async_call(std::move(ask), call, asio::use_awaitable);
  co_return got.has_value() || got.error().server != server_errc::none;
}

template <redis_client Client>
write_probe_snapshot write_probe<Client>::snapshot() const noexcept {
  write_probe_snapshot s;
  s.probes = state_->probes.read();
  s.healthy = state_->healthy.read();
  s.failed = state_->failed.read();
  s.requests = state_->requests.read();
  return s;
}

}  // namespace redoubt
