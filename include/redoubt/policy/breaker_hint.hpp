// SPDX-License-Identifier: BSL-1.0
//
// Lets the processes of a service tell each other, through Redis, that a dependency is down. A hint, nothing
// more: each breaker decides from its own memory, and works alone when Redis does not answer.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/async/run.hpp>
#include <redoubt/core/random_seeds.hpp>
#include <redoubt/core/required.hpp>
#include <redoubt/core/result.hpp>
#include <redoubt/fsm/breaker_quorum.hpp>
#include <redoubt/guard/breaker.hpp>
#include <redoubt/policy/redis_client.hpp>

namespace redoubt {

/// Options of every `breaker_hint`.
struct breaker_hint_options {
  /// The key that all processes in front of one dependency share, after the client's `key_prefix`. No
  /// default.
  required<std::string> key;
  /// What tells this process from the others, such as host name and process id. No default. Not empty.
  required<std::string> node;
  /// When the others are believed.
  breaker_quorum_options quorum{};
  /// From one exchange to the next, drawn anew each time between half of it and one and a half of it, so that
  /// the processes do not ask together. Default 1 s. Range 10 ms .. half of `quorum.window`.
  duration interval = std::chrono::seconds(1);
  /// Makes the pauses the same in every run. Default: the system's entropy.
  std::optional<std::uint64_t> seed = std::nullopt;

  /// Throws `option_error` naming the field that is out of range.
  void validate() const;
};

/// Numbers of a `breaker_hint`.
struct breaker_hint_snapshot {
  std::uint64_t exchanges = 0;  ///< Questions sent to Redis.
  std::uint64_t failed = 0;     ///< Of these: not answered, or not by what was asked for.
  std::uint32_t others = 0;     ///< Different other nodes whose news counted, at the last answer.
  std::uint64_t quorums = 0;    ///< Answers in which enough others said it.
  std::uint64_t advised = 0;    ///< Times that the breaker opened because of it.
  bool reported = false;        ///< Redis has been told that this process's breaker is open.
};

namespace detail {

/// What a process has to say, if anything.
enum class breaker_news : std::uint8_t { nothing, down, up };

/// Says it, and answers the youngest reports: names and ages in milliseconds by Redis' own clock, in turn.
[[nodiscard]] script const& breaker_hint_script();
[[nodiscard]] args breaker_hint_arguments(breaker_hint_options const& options, breaker_news news);
/// The answer's reports, which refer to it; `unexpected_reply` when it is none.
[[nodiscard]] result<std::vector<breaker_report>> read_breaker_reports(reply const& answer);

}  // namespace detail

/// A breaker that opens because of what it saw itself says so in Redis; when at least `quorum.nodes` others
/// said so within `quorum.window`, the breaker here opens, too (`breaker::advise_open`), and finds out by its
/// own trial.
///
///     breaker payments{{.name = "payments"}};
///     breaker_hint shared(redis, payments, {.key = "breaker:payments", .node = host_and_pid});
///     shared.run(asio::bind_cancellation_slot(stop.slot(), asio::detached));
///
/// No call waits for it: calls ask the breaker, which knows nothing of Redis, and all that happens here
/// happens in the background. One node with a broken path of its own opens nobody else's breaker. News are
/// used once: a breaker that was advised, found the dependency well and closed again is not opened by the
/// same news; what opened on advice is not passed on as news. When Redis is slow or unreachable there is no
/// opinion, and what it last said ends with the open period. Ages are taken from Redis' clock, so the
/// processes' clocks need not agree.
///
/// Not for a breaker in front of that same Redis. Costs one script call per interval and process, on one key
/// with one short member per node that is down; the key lives no longer than the window.
///
/// Thread-safe. Must outlive the calls in flight; the client and the breaker must outlive it.
template <redis_client Client = client>
class breaker_hint {
 public:
  using options = breaker_hint_options;
  using snapshot_type = breaker_hint_snapshot;

  /// Sends nothing. Throws `option_error` when an option is out of range.
  breaker_hint(Client& redis, breaker& guard, options o)
      : redis_(redis),
        guard_(guard),
        options_((o.validate(), std::move(o))),
        seeds_(options_.seed),
        quorum_(options_.quorum, options_.node) {}

  breaker_hint(breaker_hint const&) = delete;
  breaker_hint& operator=(breaker_hint const&) = delete;

  /// Exchanges news again and again until it is cancelled. Completion: `void(result<void>)`, on the token's
  /// executor, never inside this call; always `cancelled`. Run it once at a time.
  template <class Token = asio::deferred_t>
  auto run(Token&& token = Token{}) {
    return async_run<result<void>>(
        redis_.get_executor(), [this] { return loop(); }, std::forward<Token>(token));
  }

  /// Exchanges news once, within the client's own limits and by `by`. Completion: `void(result<void>)`:
  /// whether Redis answered.
  template <class Token = asio::deferred_t>
  auto exchange(deadline by = {}, Token&& token = Token{}) {
    return async_run<result<void>>(
        redis_.get_executor(), [this, by] { return once(by); }, std::forward<Token>(token));
  }

  /// Numbers so far.
  [[nodiscard]] breaker_hint_snapshot snapshot() const {
    std::scoped_lock const lock(mutex_);
    auto out = counts_;
    out.others = quorum_.snapshot().others;
    out.quorums = quorum_.snapshot().quorums;
    return out;
  }

 private:
  asio::awaitable<result<void>> loop();
  asio::awaitable<result<void>> once(deadline by);
  [[nodiscard]] detail::breaker_news news(bool down) const;
  void hear(std::vector<breaker_report> const& reports, bool open, time_point asked);

  Client& redis_;
  breaker& guard_;
  options const options_;
  random_seeds seeds_;
  std::mutex mutable mutex_;
  breaker_quorum quorum_;         // under the mutex
  breaker_hint_snapshot counts_;  // under the mutex
};

template <redis_client Client>
asio::awaitable<result<void>> breaker_hint<Client>::loop() {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  auto random = seeds_.next();
  timer clock(redis_.get_executor());
  for (;;) {
    auto const half = static_cast<std::uint64_t>(options_.interval.count() / 2);
    auto const pause =
        options_.interval / 2 + duration(static_cast<duration::rep>(random.below(2 * half + 1)));
    time_point const next = saturating_add(clock.now(), pause);
    (void)co_await once(deadline(next));
    boost::system::error_code ignored;
    asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() == asio::cancellation_type::none) {
      co_await clock.async_wait_until(next, asio::redirect_error(asio::use_awaitable, ignored));
      state = co_await asio::this_coro::cancellation_state;
      if (state.cancelled() == asio::cancellation_type::none) continue;
    }
    failure f;
    f.code = errc::cancelled;
    f.effect = effect::unknown;
    result<void> out(f);
    co_return out;
  }
}

template <redis_client Client>
asio::awaitable<result<void>> breaker_hint<Client>::once(deadline by) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  asio::any_io_executor const executor = redis_.get_executor();
  auto const own = guard_.snapshot();
  bool const open = own.phase == breaker_phase::open || own.phase == breaker_phase::half_open;
  bool const down = open && own.cause != errc::breaker_open;
  keys where(options_.key.get());
  args what = detail::breaker_hint_arguments(options_, news(down));
  call_options call;
  call.by = by;
  time_point const asked = now(executor);
  result<reply> const got = co_await redis_.async_eval(detail::breaker_hint_script(), std::move(where),
                                                       std::move(what), call, asio::use_awaitable);

  result<void> out;
  auto const reports =
      got ? detail::read_breaker_reports(*got) : result<std::vector<breaker_report>>(got.error());
  if (!reports) out = reports.error();
  {
    std::scoped_lock const lock(mutex_);
    ++counts_.exchanges;
    if (!reports) ++counts_.failed;
    if (reports) counts_.reported = down;
  }
  if (reports) hear(*reports, open, asked);
  co_return out;
}

template <redis_client Client>
detail::breaker_news breaker_hint<Client>::news(bool down) const {
  std::scoped_lock const lock(mutex_);
  if (down == counts_.reported) return detail::breaker_news::nothing;
  return down ? detail::breaker_news::down : detail::breaker_news::up;
}

template <redis_client Client>
void breaker_hint<Client>::hear(std::vector<breaker_report> const& reports, bool open, time_point asked) {
  std::optional<time_point> until;
  {
    std::scoped_lock const lock(mutex_);
    until = quorum_.on_reports(reports, asked);
  }
  auto const at = now(redis_.get_executor());
  // Outside the lock: the breaker tells its listener.
  bool const advised = until && guard_.advise_open(*until, at);
  std::scoped_lock const lock(mutex_);
  if (advised) ++counts_.advised;
  if (advised || open) quorum_.settle(at);
}

}  // namespace redoubt
