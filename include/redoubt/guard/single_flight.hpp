// SPDX-License-Identifier: BSL-1.0
//
// One call per key at a time: whoever asks for what is being fetched already waits for that instead of
// fetching it again.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <redoubt/async/cancel_point.hpp>
#include <redoubt/async/clock.hpp>
#include <redoubt/core/block_cache.hpp>
#include <redoubt/core/brief_mutex.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/fsm/flight_table.hpp>
#include <redoubt/guard/layer.hpp>

namespace redoubt {

/// How a single flight behaves.
struct single_flight_options {
  /// Appears in failures. Default "single_flight".
  std::string name = "single_flight";
  /// Keys under way at once, abandoned ones included. Default 1024. Range 1 .. 1048576.
  std::uint32_t keys = 1024;
  /// Callers that wait for somebody else's flight, over all keys. Default 4096. Range 1 .. 1048576.
  std::uint32_t followers = 4096;
  /// Limit of a flight, whoever waits for it: it does not end with its leader's deadline. Default 1 s. Range
  /// 1 ms .. 1 h.
  duration limit = std::chrono::seconds(1);

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

namespace detail {

/// What a single flight says when it has no value for a caller.
struct flight_failures {
  explicit flight_failures(std::string const& name);
  [[nodiscard]] failure full() const;
  [[nodiscard]] failure too_late() const;
  [[nodiscard]] failure expired(bool own, duration elapsed) const;
  [[nodiscard]] failure cancelled(duration elapsed) const;
  [[nodiscard]] failure closed() const;
  [[nodiscard]] failure no_copy() const;
  [[nodiscard]] failure no_key() const;
  std::shared_ptr<failure_detail const> text;
};

/// What a plan says about one.
[[nodiscard]] layer_description describe_single_flight(single_flight_options const& options,
                                                       call_figures inside);

}  // namespace detail

/// Calls with the same key share one flight. `T` is copied to each of them. Thread-safe; may be destroyed
/// before its calls end. In a stack: `one_per_key(flights)`.
///
/// The first caller of a key leads: its call goes on to what is inside. Further callers wait for its result,
/// success or failure alike, and each has its answer by its own deadline; none of them starts a second
/// flight. The leader is a waiter like the others: when it is cancelled or out of time the flight goes on for
/// the rest. When the last one has gone the flight is asked to stop, stays counted until it really ends, and
/// the next caller leads a new one.
///
/// Failures of its own: `flight_full` at once (rejected, effect none) when all keys or followers are taken;
/// `deadline_exceeded` by the caller's deadline and `limit_exceeded` by the flight's, both with effect
/// unknown; `cancelled`; `load_failed` for a caller whose copy of the value threw, and with effect none for
/// one whose key threw when it was made, hashed, compared or copied.
template <std::equality_comparable Key, std::copy_constructible T, class Hash = std::hash<Key>>
class single_flight {
 public:
  using options = single_flight_options;
  using key_type = Key;
  using value_type = T;

  /// Throws `option_error` when an option is out of range.
  explicit single_flight(options o = {}) {
    o.validate();
    core_ = std::make_shared<core>(std::move(o));
  }

  /// Numbers at this moment.
  [[nodiscard]] flight_snapshot snapshot() const {
    std::scoped_lock const lock(core_->mutex);
    return core_->table.snapshot();
  }
  /// The name it was given.
  [[nodiscard]] std::string const& name() const noexcept { return core_->options.name; }

 private:
  template <class Flights, class KeyOf>
  friend class single_flight_layer;

  /// A caller, whose completion is of a type that only its layer knows.
  class caller : public cancel_listener {
   public:
    virtual void complete(result<T> value) = 0;
  };
  using table_type = flight_table<Key, std::shared_ptr<caller>, Hash>;
  using waiter_id = typename table_type::waiter_id;
  using kind = typename table_type::entry::kind;

  /// A flight under way. Kept alive by what is inside until that has really ended.
  struct flight {
    cancel_point stop;
    std::optional<timer> clock;            // under the mutex
    time_point armed = time_point::max();  // under the mutex
    deadline end;
    std::uint32_t place = 0;
    std::atomic<bool> over{false};
  };

  struct core : std::enable_shared_from_this<core> {
    explicit core(single_flight_options o)
        : options(std::move(o)),
          failures(options.name),
          table(options.keys, options.followers) {}

    // Sets the flight's timer to whoever is next; under the mutex.
    void arm(std::shared_ptr<flight> const& f) {
      if (!f->clock || f->over) return;
      auto const next = table.next_wakeup(f->place);
      if (next == f->armed) return;
      f->armed = next;
      f->clock->cancel();
      if (next == time_point::max()) return;
      f->clock->async_wait_until(next, [self = this->shared_from_this(), f](boost::system::error_code ec) {
        if (!ec) self->on_timer(f);
      });
    }

    void on_timer(std::shared_ptr<flight> const& f) {
      ring<std::shared_ptr<caller>> late;
      bool abandoned = false;
      time_point now;
      {
        std::scoped_lock const lock(mutex);
        if (f->over) return;
        now = f->clock->now();
        f->armed = time_point::max();
        abandoned = table.on_time(f->place, now, late);
        arm(f);
      }
      bool const own = f->end.passed(now);
      while (!late.empty()) late.pop_front()->complete(failures.expired(own, duration::zero()));
      if (abandoned) f->stop.cancel();
    }

    // `cancelled` and `who`, of the call that is to leave, are under the mutex.
    void on_cancel(bool& cancelled, waiter_id const& who, time_point since, time_source const& clock) {
      typename table_type::leaving gone;
      std::shared_ptr<flight> stopped;
      {
        std::scoped_lock const lock(mutex);
        cancelled = true;
        gone = table.leave(who);
        if (!gone.waited) return;
        if (gone.abandoned) stopped = flights[gone.flight];
      }
      gone.who->complete(failures.cancelled(clock.now() - since));
      if (stopped) stopped->stop.cancel();
    }

    // The flight has ended; with nobody's value when it was dropped.
    void finish(flight& f, result<T> value) {
      ring<std::shared_ptr<caller>> others;
      std::optional<std::shared_ptr<caller>> first;
      {
        std::scoped_lock const lock(mutex);
        f.over.store(true);
        if (f.clock) f.clock->cancel();
        first = table.finish(f.place, others);
        flights[f.place].reset();
      }
      while (!others.empty()) others.pop_front()->complete(copy(value));
      if (first) (*first)->complete(std::move(value));
    }

    // Copying is the application's, too; whoever cannot have a copy must hear of it all the same.
    [[nodiscard]] result<T> copy(result<T> const& value) const {
      try {
        return value;
      } catch (...) {
        return failures.no_copy();
      }
    }

    single_flight_options options;
    detail::flight_failures failures;
    detail::brief_mutex mutex;
    table_type table;                              // under the mutex
    std::vector<std::shared_ptr<flight>> flights;  // by place; under the mutex
  };

  /// What a flight completes.
  class landing {
   public:
    landing(std::shared_ptr<core> c, std::shared_ptr<flight> f) noexcept
        : core_(std::move(c)),
          flight_(std::move(f)) {}
    landing(landing&&) noexcept = default;
    landing& operator=(landing&&) = delete;
    ~landing() {
      // Dropped: its executor was stopped. The others need not wait for what never comes.
      if (core_) core_->finish(*flight_, core_->failures.closed());
    }
    void operator()(result<T> value) {
      auto const c = std::exchange(core_, nullptr);
      c->finish(*flight_, std::move(value));
    }

   private:
    std::shared_ptr<core> core_;
    std::shared_ptr<flight> flight_;
  };

  template <class Done>
  class waiting_call final : public caller, public std::enable_shared_from_this<waiting_call<Done>> {
   public:
    waiting_call(std::shared_ptr<core> c, Done done, call_scope const& scope)
        : core_(std::move(c)),
          done_(std::move(done)),
          clock_(&scope.clock),
          since_(scope.now) {}

    void complete(result<T> value) override {
      if (!value.has_value() && value.error().elapsed == duration::zero() && !value.error().rejected) {
        auto f = std::move(value).error();
        f.elapsed = clock_->now() - since_;
        value = std::move(f);
      }
      std::move(done_)(std::move(value));
    }
    void on_cancel() noexcept override { core_->on_cancel(cancelled_, who_, since_, *clock_); }

    waiter_id who_{};         // under the core's mutex
    bool cancelled_ = false;  // under the core's mutex

   private:
    std::shared_ptr<core> core_;
    Done done_;
    time_source* clock_;
    time_point since_;
  };

  std::shared_ptr<core> core_;
};

/// See `one_per_key`.
template <class Flights, class KeyOf>
class single_flight_layer {
 public:
  static constexpr int rank = layer_rank::coalesce;
  single_flight_layer(Flights& flights, KeyOf key_of) : core_(flights.core_), key_of_(std::move(key_of)) {}

  [[nodiscard]] layer_description describe(call_figures const& inside) const {
    return detail::describe_single_flight(core_->options, inside);
  }

  template <class T, class Next, class Done, class... Args>
  void start(Next const& next, call_scope const& scope, Done done, Args const&... args) const {
    static_assert(std::same_as<T, typename Flights::value_type>,
                  "redoubt: the single flight holds another type than the operation gives");
    using call_type = typename Flights::template waiting_call<Done>;
    using kind = typename Flights::kind;
    auto& c = *core_;
    auto const call =
        std::allocate_shared<call_type>(detail::block_allocator<call_type>(), core_, std::move(done), scope);
    // Before it can be answered: afterwards the cancel_point may be gone.
    if (scope.cancel != nullptr) scope.cancel->listen(call);

    auto const end = deadline(saturating_add(scope.now, c.options.limit));
    std::unique_lock lock(c.mutex, std::defer_lock);
    typename Flights::table_type::entry entry;
    bool cancelled = false, no_key = false;
    try {
      auto&& key = key_of_(args...);  // the application's: outside the lock
      lock.lock();
      cancelled = call->cancelled_;
      if (!cancelled) entry = c.table.join(key, scope.now, scope.by, end, call);
    } catch (...) {
      no_key = true;
    }
    if (cancelled || no_key) {
      if (lock.owns_lock()) lock.unlock();
      return call->complete(no_key ? c.failures.no_key() : c.failures.cancelled(duration::zero()));
    }
    call->who_ = entry.who;
    switch (entry.what) {
      case kind::joined:
        // Later deadlines than the one the timer is set to need not be looked at.
        if (scope.by.at() < c.flights[entry.flight]->armed) c.arm(c.flights[entry.flight]);
        return;
      case kind::full: lock.unlock(); return call->complete(c.failures.full());
      case kind::expired: lock.unlock(); return call->complete(c.failures.too_late());
      case kind::led: break;
    }
    lead(next, scope, end, entry.flight, lock, args...);
  }

 private:
  template <class Next, class... Args>
  void lead(Next const& next, call_scope const& scope, deadline end, std::uint32_t place,
            std::unique_lock<detail::brief_mutex>& lock, Args const&... args) const {
    using flight_type = typename Flights::flight;
    auto const flight = std::allocate_shared<flight_type>(detail::block_allocator<flight_type>());
    flight->place = place;
    flight->end = end;
    if (core_->flights.size() <= place) core_->flights.resize(place + 1);
    core_->flights[place] = flight;
    lock.unlock();

    next(call_scope{scope.executor, scope.clock, end, scope.now, &flight->stop},
         typename Flights::landing(core_, flight), args...);

    if (flight->over.load()) return;
    lock.lock();
    if (flight->over.load()) return;
    flight->clock.emplace(scope.executor);
    core_->arm(flight);
  }

  std::shared_ptr<typename Flights::core> core_;
  KeyOf key_of_;
};

/// One call per key as a layer of a stack. The key is what `key_of(args...)` gives.
template <class Key, class T, class Hash, class KeyOf>
[[nodiscard]] auto one_per_key(single_flight<Key, T, Hash>& flights, KeyOf key_of) {
  return single_flight_layer<single_flight<Key, T, Hash>, KeyOf>(flights, std::move(key_of));
}

/// The same with the first argument as the key.
template <class Key, class T, class Hash>
[[nodiscard]] auto one_per_key(single_flight<Key, T, Hash>& flights) {
  return one_per_key(flights, [](auto const& first, auto const&...) -> Key const& { return first; });
}

}  // namespace redoubt
