// SPDX-License-Identifier: BSL-1.0
//
// Read through Redis, load from the source on a miss. Fails open by nature: when the cache cannot be read the
// loader answers, under a bound that does not grow with the number of requests.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/async/run.hpp>
#include <redoubt/async/run_by.hpp>
#include <redoubt/core/events.hpp>
#include <redoubt/core/random_seeds.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/guard/bulkhead.hpp>
#include <redoubt/policy/cache_aside_options.hpp>
#include <redoubt/policy/codec.hpp>
#include <redoubt/policy/outcome.hpp>
#include <redoubt/policy/redis_client.hpp>

namespace redoubt {

/// Reads through Redis; on a miss, or when Redis cannot be read, calls the loader and stores what it gave.
///
///     cache_aside<std::string, price> catalog(redis, loader, {.key = "price:", .ttl = 60s, .slots = &db});
///     auto price = co_await catalog.get(sku, by);
///
/// - A failed read (`failure::fail_mode_applies()`) becomes a load, and the outcome is `degraded()`. Nothing
///   is written then: a cache that could not be read a moment ago would only cost its time limit once more.
/// - A misconfigured or misused cache (NOPERM, WRONGTYPE) does not fail open: the outcome's problem is
///   `cache_failed`.
/// - A load needs a slot. Waiting for it and loading share `load_timeout`. When no slot comes free the
///   outcome is `busy()`: a wait ends in refusal, never in a load beside the bound. A load that is given up
///   keeps its slot until it really ends.
/// - A loader's failure or exception reaches the caller unchanged.
/// - A failed write is reported and counted; the value is returned all the same.
/// - The caller's cancellation ends the call and never starts a fallback.
/// - Redis is asked at most twice, each call sent at most once; the write is inside the caller's wait.
///
/// An entry that is invalidated while a load is under way may be overwritten by that load's older value and
/// then lives until its `ttl` ends; do not cache what must not be served after a revocation.
///
/// Thread-safe. Must outlive the calls in flight; the client, the bulkhead and the event sink must outlive
/// it. A loader that was given up goes on with copies of the key and the loader, so what the loader refers to
/// must live as long.
template <cache_keyable Key, cacheable Value, redis_client Client = client>
class cache_aside {
 public:
  using options = cache_aside_options;
  using snapshot_type = cache_aside_snapshot;

  /// `load` is called as `load(key, deadline)` on the client's executor and gives `awaitable<Value>` or
  /// `awaitable<result<Value>>`. It should end by the deadline it is given. Throws `option_error` when an
  /// option is out of range.
  template <class Loader>
    requires std::copy_constructible<std::decay_t<Loader>> &&
                 (std::is_invocable_r_v<asio::awaitable<result<Value>>, Loader&, Key const&, deadline> ||
                  std::is_invocable_r_v<asio::awaitable<Value>, Loader&, Key const&, deadline>)
  cache_aside(Client& redis, Loader load, options o)
      : client_(redis),
        options_((o.validate(), std::move(o))),
        seeds_(options_.seed),
        loader_(std::make_shared<loader const>(erase(std::move(load)))) {
    if (options_.slots == nullptr) own_slots_.emplace(bulkhead::options{.name = options_.name});
  }

  cache_aside(cache_aside const&) = delete;
  cache_aside& operator=(cache_aside const&) = delete;

  /// The value of `key`. Completion: `void(outcome<Value>)`, on the token's executor, exactly once, never
  /// inside this call, and not later than `by`; without `by`, within `worst_case()`.
  template <class Token = asio::deferred_t>
  auto get(Key key, deadline by = {}, Token&& token = Token{}) {
    auto name = key_of(key);
    return async_run<outcome<Value>>(
        client_.get_executor(),
        [this, key = std::move(key), name = std::move(name), by]() mutable {
          return run(std::move(key), std::move(name), by);
        },
        std::forward<Token>(token));
  }

  /// Removes the entry, so that the next `get` loads. Completion: `void(result<bool>)`, true when there was
  /// one; the failure is the client's. With effect `unknown` the entry may or may not be gone.
  template <class Token = asio::deferred_t>
  auto invalidate(Key const& key, deadline by = {}, Token&& token = Token{}) {
    return async_run<result<bool>>(
        client_.get_executor(),
        [this, name = key_of(key), by]() mutable { return remove(std::move(name), by); },
        std::forward<Token>(token));
  }

  /// The longest that `get` can take without a deadline: read, load and write.
  [[nodiscard]] duration worst_case() const {
    return duration(client_.call_timeout()) + options_.load_timeout + duration(client_.call_timeout());
  }

  /// Numbers so far.
  [[nodiscard]] cache_aside_snapshot snapshot() const noexcept { return counters_.read(); }

 private:
  using loader = std::function<asio::awaitable<result<Value>>(Key const&, deadline)>;
  using counter = detail::counter;

  // An optional, because Asio wants a default constructible result and `Value` need not be.
  using loaded_value = std::optional<result<Value>>;

  template <class Loader>
  static loader erase(Loader load) {
    if constexpr (std::is_invocable_r_v<asio::awaitable<result<Value>>, Loader&, Key const&, deadline>) {
      return loader(std::move(load));
    } else {
      return loader(
          [load = std::move(load)](Key const& key, deadline by) mutable { return as_result(load(key, by)); });
    }
  }
  static asio::awaitable<result<Value>> as_result(asio::awaitable<Value> loading) {
    Value value = co_await std::move(loading);
    co_return result<Value>(std::move(value));
  }
  // The slot is a parameter of this coroutine, so it is free again before the caller hears of the value.
  static asio::awaitable<loaded_value> call_loader(std::shared_ptr<loader const> load, Key key, deadline by,
                                                   [[maybe_unused]] bulkhead::permit slot) {
    result<Value> value = co_await (*load)(key, by);
    co_return loaded_value(std::move(value));
  }

  asio::awaitable<outcome<Value>> run(Key key, std::string name, deadline by);
  asio::awaitable<outcome<Value>> load_value(Key key, std::string name, deadline by, outcome_state state);
  asio::awaitable<result<bool>> remove(std::string name, deadline by);

  outcome<Value> end(outcome_state state, outcome_problem problem, failure why);
  static std::optional<Value> decode(std::string_view bytes);

  [[nodiscard]] std::string key_of(Key const& key) const {
    std::string name(client_.key_prefix());
    name += options_.key.get();
    name += cache_key<Key>::text(key);
    return name;
  }
  void tell(event_kind kind, failure const* cause) const noexcept {
    if (options_.events != nullptr)
      options_.events->on(event{.kind = kind, .source = options_.name, .cause = cause});
  }

  Client& client_;
  options const options_;
  random_seeds seeds_;
  std::shared_ptr<loader const> loader_;
  std::optional<bulkhead> own_slots_;
  detail::cache_aside_counters counters_;
};

template <cache_keyable Key, cacheable Value, redis_client Client>
asio::awaitable<outcome<Value>> cache_aside<Key, Value, Client>::run(Key key, std::string name, deadline by) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  counters_.requests.add();
  outcome_state state;

  command get_it("GET", name);
  call_options call;
  call.by = by;
  result<reply> got = co_await client_.async_call(std::move(get_it), call, asio::use_awaitable);

  if (!got) {
    failure why = got.error();
    if (why.group() == failure_class::cancelled)
      co_return end(std::move(state), outcome_problem::cancelled, why);
    counters_.redis_errors.add();
    tell(event_kind::cache_read_failed, &why);
    if (!why.fail_mode_applies()) co_return end(std::move(state), outcome_problem::cache_failed, why);
    counters_.fallbacks.add();
    state.degraded = std::move(why);
  } else if (got->is_string()) {
    std::optional<Value> value = decode(got->as_string());
    if (value) {
      counters_.cached.add();
      state.origin = origin::cached;
      outcome<Value> out(std::move(*value), std::move(state));
      co_return out;
    }
    counters_.malformed.add();
    tell(event_kind::cache_value_malformed, nullptr);
  } else if (!got->is_nil()) {
    counters_.redis_errors.add();
    co_return end(std::move(state), outcome_problem::cache_failed,
                  detail::policy_failure(errc::unexpected_reply));
  }

  asio::awaitable<outcome<Value>> loading = load_value(std::move(key), std::move(name), by, std::move(state));
  co_return co_await std::move(loading);
}

template <cache_keyable Key, cacheable Value, redis_client Client>
asio::awaitable<outcome<Value>> cache_aside<Key, Value, Client>::load_value(Key key, std::string name,
                                                                            deadline by,
                                                                            outcome_state state) {
  asio::any_io_executor const executor = client_.get_executor();
  time_point const start = now(executor);
  deadline const load_by = earlier(by, deadline(saturating_add(start, options_.load_timeout)));
  asio::cancellation_state const cancelled = co_await asio::this_coro::cancellation_state;
  if (cancelled.cancelled() != asio::cancellation_type::none) {
    co_return end(std::move(state), outcome_problem::cancelled, detail::policy_failure(errc::cancelled));
  }

  bulkhead& slots = options_.slots != nullptr ? *options_.slots : *own_slots_;
  result<bulkhead::permit> slot = co_await slots.acquire(executor, load_by, asio::use_awaitable);
  if (!slot) {
    failure why = slot.error();
    bool const gone = why.group() == failure_class::cancelled;
    co_return end(std::move(state), gone ? outcome_problem::cancelled : outcome_problem::busy,
                  std::move(why));
  }

  counters_.database_loads.add();
  auto task = [load = loader_, key = std::move(key), load_by, slot = std::move(*slot)]() mutable {
    return call_loader(std::move(load), std::move(key), load_by, std::move(slot));
  };
  run_result<loaded_value> ended =
      co_await run_by<loaded_value>(executor, load_by, std::move(task), asio::use_awaitable);

  duration const elapsed = now(executor) - start;
  if (ended.end == run_end::cancelled) {
    co_return end(std::move(state), outcome_problem::cancelled,
                  detail::policy_failure(errc::cancelled, elapsed));
  }
  if (ended.end == run_end::expired) {
    co_return end(std::move(state), outcome_problem::busy,
                  detail::policy_failure(errc::load_timeout, elapsed));
  }
  if (ended.end == run_end::threw) {
    state.exception = ended.error;
    co_return end(std::move(state), outcome_problem::load_failed,
                  detail::policy_failure(errc::load_failed, elapsed));
  }
  result<Value>& loaded = **ended.value;
  if (!loaded) co_return end(std::move(state), outcome_problem::load_failed, loaded.error());

  // A cache that could not be read is not written: that would only cost its time limit once more.
  if (!state.degraded) {
    std::string bytes;
    try {
      bytes = codec<Value>::encode(*loaded);
    } catch (...) {
      state.exception = std::current_exception();
    }
    if (state.exception) {
      co_return end(std::move(state), outcome_problem::load_failed,
                    detail::policy_failure(errc::load_failed, elapsed));
    }
    auto const life = detail::spread_ttl(options_.ttl, options_.ttl_spread, seeds_.next());
    command set_it("SET", name, bytes, "PX",
                   std::chrono::duration_cast<std::chrono::milliseconds>(life).count());
    call_options call;
    call.by = by;
    result<reply> stored = co_await client_.async_call(std::move(set_it), call, asio::use_awaitable);
    if (!stored) {
      failure why = stored.error();
      if (why.group() == failure_class::cancelled)
        co_return end(std::move(state), outcome_problem::cancelled, why);
      counters_.redis_errors.add();
      counters_.write_failures.add();
      tell(event_kind::cache_write_failed, &why);
      state.degraded = std::move(why);
    }
  }
  counters_.loaded.add();
  state.origin = origin::loaded;
  outcome<Value> out(std::move(*loaded), std::move(state));
  co_return out;
}

template <cache_keyable Key, cacheable Value, redis_client Client>
asio::awaitable<result<bool>> cache_aside<Key, Value, Client>::remove(std::string name, deadline by) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  command del("DEL", name);
  call_options call;
  call.by = by;
  result<reply> got = co_await client_.async_call(std::move(del), call, asio::use_awaitable);
  result<bool> out(false);
  if (!got) {
    counters_.redis_errors.add();
    out = got.error();
  } else if (!got->is_integer()) {
    counters_.redis_errors.add();
    out = detail::policy_failure(errc::unexpected_reply);
  } else {
    out = got->as_integer() > 0;
  }
  co_return out;
}

template <cache_keyable Key, cacheable Value, redis_client Client>
outcome<Value> cache_aside<Key, Value, Client>::end(outcome_state state, outcome_problem problem,
                                                    failure why) {
  switch (problem) {
    case outcome_problem::cancelled: counters_.cancelled.add(); break;
    case outcome_problem::busy:
      counters_.refused.add();
      tell(event_kind::load_refused, &why);
      break;
    case outcome_problem::none:
    case outcome_problem::load_failed:
    case outcome_problem::cache_failed: counters_.failed.add(); break;
  }
  state.problem = problem;
  state.error = std::move(why);
  return outcome<Value>(std::move(state));
}

template <cache_keyable Key, cacheable Value, redis_client Client>
std::optional<Value> cache_aside<Key, Value, Client>::decode(std::string_view bytes) {
  try {
    return codec<Value>::decode(bytes);
  } catch (...) {  // a decoder that throws on strange bytes means the same as one that returns nothing
    return std::nullopt;
  }
}

}  // namespace redoubt
