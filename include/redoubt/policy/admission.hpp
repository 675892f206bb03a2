// SPDX-License-Identifier: BSL-1.0
//
// One at a time per id: the first who enters may act, everybody else is told so until the hold ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/async/run.hpp>
#include <redoubt/core/counter.hpp>
#include <redoubt/core/events.hpp>
#include <redoubt/core/required.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/policy/redis_client.hpp>
#include <redoubt/policy/ticket.hpp>

namespace redoubt {

/// What `ticket::idempotency_key()` is derived from.
enum class idempotency : std::uint8_t {
  /// The id: every try for the same id carries the same key, so a provider that remembers it never acts
  /// twice.
  per_id,
  /// The id and this entry's own token: for providers that also remember a decline, which must not be
  /// replayed for a new attempt. Repeating one attempt after a lost answer is then the application's task,
  /// with the key it was given.
  per_attempt,
};

/// Options of every `admission`.
struct admission_options {
  /// Source of its events. Default "admission".
  std::string name = "admission";
  /// Put before each id, after the client's own `key_prefix`. No default: admissions must not share entries
  /// by accident.
  required<std::string> key;
  /// How long an entry keeps others out; the entry is never removed earlier. No default. Range 1 ms .. 366
  /// days. It must be longer than the longest handler, or a second one is admitted while the first still
  /// runs.
  required<duration> hold;
  /// The handler's own limit, if it has one: then `hold` is checked to be longer. Default: not checked.
  std::optional<duration> handler_limit{};
  /// Default `per_id`.
  redoubt::idempotency idempotency = redoubt::idempotency::per_id;
  /// Put before the id in the idempotency key. Default: the client's `key_prefix` and `key`.
  std::optional<std::string> idempotency_prefix{};
  /// Told about refusals and about Redis being unavailable; must outlive the admission. Default: nobody.
  event_sink* events = nullptr;
  /// Seed of the entries' tokens, for repeatable tests only. Default: the system's entropy.
  std::optional<std::uint64_t> seed{};

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// Numbers of an `admission`. When nothing is in flight: `requests == admitted + degraded + refused +
/// unavailable + errors`.
struct admission_snapshot {
  std::uint64_t requests = 0;     ///< `enter` calls started.
  std::uint64_t admitted = 0;     ///< The first.
  std::uint64_t degraded = 0;     ///< Admitted unchecked, because Redis was unavailable (fail open).
  std::uint64_t refused = 0;      ///< Not the first: the 409s.
  std::uint64_t unavailable = 0;  ///< No clear answer, hence not admitted (fail closed): the 503s.
  std::uint64_t errors = 0;       ///< `open_verdict::error` (fail open).
  std::uint64_t uncertain =
      0;  ///< No clear answer, and Redis may hold the entry: repeats are refused until it expires.
  std::uint64_t redis_errors = 0;  ///< Calls that failed, cancelled ones not counted.
};

namespace detail {

/// 128 random bits in hexadecimal: the system's entropy, or, with a seed, the same sequence in every run.
[[nodiscard]] std::string entry_token(std::optional<std::uint64_t> seed, std::uint64_t number);

struct admission_counters {
  counter requests, admitted, degraded, refused, unavailable, errors, uncertain, redis_errors;
  void count(ticket<fail_open> const& t) noexcept;
  void count(ticket<fail_closed> const& t) noexcept;
  [[nodiscard]] admission_snapshot read() const noexcept;
};

}  // namespace detail

/// Admits one entry per id and `hold`, with one `SET key token NX PX hold`.
///
///     admission<fail_closed> payment(redis, {.key = "payment:", .hold = 30s});
///     auto ticket = co_await payment.enter(order);
///     switch (ticket.verdict()) { ... }
///     co_await charge(amount, ticket.idempotency_key());
///
/// What it does and what it does not do: Redis only keeps the application's own flow from running twice at
/// once. It does not guard the money. An entry can be lost in a failover, and a handler can outlive the hold;
/// so the provider must recognise a repeated `idempotency_key()`. Where it cannot, keep a record of attempts
/// and reconcile.
///
/// The entry stays for the whole hold, whatever becomes of the action: a lost reply from the provider is not
/// a failed charge, so nothing here removes it. A repeat within the hold is `refused`, a declined card
/// included.
///
/// With `fail_closed` everything that is not a clear answer is `unavailable`, a lost reply included: nothing
/// protected may start. `error()` then says whether Redis may hold the entry (effect `unknown`). The command
/// is never repeated. With `fail_open`, for a provider that deduplicates concurrent calls itself,
/// unavailability admits and is `degraded()`.
///
/// Thread-safe. Must outlive the calls in flight; the client and the event sink must outlive it.
template <fail_mode FailMode, redis_client Client = client>
  requires(!repeats_calls<Client>)  // a lost answer may have made the entry: asking again would refuse its
                                    // own owner
class admission {
 public:
  using options = admission_options;
  using snapshot_type = admission_snapshot;
  using ticket_type = ticket<FailMode>;

  /// Throws `option_error` when an option is out of range.
  admission(Client& redis, options o) : client_(redis), options_((o.validate(), std::move(o))) {}

  admission(admission const&) = delete;
  admission& operator=(admission const&) = delete;

  /// Tries to be the first for `id`. Completion: `void(ticket<FailMode>)`, on the token's executor, exactly
  /// once, never inside this call, and not later than `by`; without `by`, within `worst_case()`.
  template <class Token = asio::deferred_t>
  auto enter(std::string_view id, deadline by = {}, Token&& token = Token{}) {
    return async_run<ticket_type>(
        client_.get_executor(), [this, id = std::string(id), by]() mutable { return run(std::move(id), by); },
        std::forward<Token>(token));
  }

  /// The longest that `enter` can take without a deadline: one call.
  [[nodiscard]] duration worst_case() const { return client_.call_timeout(); }

  /// Numbers so far.
  [[nodiscard]] admission_snapshot snapshot() const noexcept { return counters_.read(); }

 private:
  asio::awaitable<ticket_type> run(std::string id, deadline by) {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    auto const number = counters_.requests.add();
    std::string const entry = detail::entry_token(options_.seed, number);
    std::string const name = std::string(client_.key_prefix()) + options_.key.get() + id;
    auto const hold = std::chrono::duration_cast<std::chrono::milliseconds>(options_.hold.get());

    command set_it("SET", name, entry, "NX", "PX", hold.count());
    call_options call;
    call.by = by;
    result<reply> got = co_await client_.async_call(std::move(set_it), call, asio::use_awaitable);

    ticket_type out = decide(got, key_for_provider(id, entry));
    counters_.count(out);
    co_return out;
  }

  ticket_type decide(result<reply> const& got, std::string provider_key) {
    if (got && got->is_nil()) {
      tell(event_kind::admission_refused, nullptr);
      return ticket_type(false, {});
    }
    if (got && got->is_status() && got->as_string() == "OK")
      return ticket_type(true, std::move(provider_key));

    failure why;
    if (got) {
      why.code = errc::unexpected_reply;
      why.phase = phase::done;
      why.command = command_name("SET");
    } else {
      why = got.error();
    }
    if (why.group() != failure_class::cancelled) {
      counters_.redis_errors.add();
      tell(event_kind::admission_unavailable, &why);
    }
    return ticket_type(std::move(why), std::move(provider_key));
  }

  [[nodiscard]] std::string key_for_provider(std::string const& id, std::string const& entry) const {
    std::string key;
    if (options_.idempotency_prefix) {
      key = *options_.idempotency_prefix;
    } else {
      key = std::string(client_.key_prefix()) + options_.key.get();
    }
    key += id;
    if (options_.idempotency == idempotency::per_attempt) key += ":" + entry;
    return key;
  }

  void tell(event_kind kind, failure const* cause) const noexcept {
    if (options_.events != nullptr)
      options_.events->on(event{.kind = kind, .source = options_.name, .cause = cause});
  }

  Client& client_;
  options const options_;
  detail::admission_counters counters_;
};

}  // namespace redoubt
