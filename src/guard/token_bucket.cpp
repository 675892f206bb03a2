// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/token_bucket.hpp>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>

#include <redoubt/core/named_detail.hpp>
#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

static_assert(std::atomic<time_point>::is_always_lock_free);

void token_bucket::options::validate() const {
  rate.validate();
  detail::require_option(max_wait >= 0ns && max_wait <= 1h, "token_bucket", "max_wait", max_wait,
                         "must be 0 to 1 h");
  detail::require_option(max_hold_off >= 1ms && max_hold_off <= 24h, "token_bucket", "max_hold_off",
                         max_hold_off, "must be 1 ms to 24 h");
}

token_bucket::token_bucket(options o)
    : name_((o.validate(), std::move(o.name))),
      max_wait_(o.max_wait),
      max_hold_off_(o.max_hold_off),
      rate_(o.rate),
      meter_(o.rate),
      detail_(detail::named_detail(name_)) {}

rate_meter::answer token_bucket::take(time_point now, time_point latest) noexcept {
  auto state = state_.load(std::memory_order_relaxed);
  for (;;) {
    auto const got = meter_.take(state, now, latest);
    // Nothing is published by the state but itself, so no ordering is needed.
    if (got.granted && !state_.compare_exchange_weak(state, got.state, std::memory_order_relaxed)) continue;
    if (got.granted) {
      granted_.add();
    } else {
      refused_.add();
    }
    return got;
  }
}

failure token_bucket::refusal(duration wait) const {
  failure f;
  f.code = errc::rate_limited;
  f.effect = effect::none;
  f.phase = phase::queue;
  f.rejected = true;
  f.retry_after = wait;
  f.detail = detail_;
  return f;
}

result<void> token_bucket::try_acquire(time_point now) {
  auto const got = take(now, now);
  if (!got.granted) return refusal(got.at - now);
  return {};
}

asio::awaitable<result<void>> token_bucket::turn(asio::any_io_executor executor, deadline by) {
  auto const now = redoubt::now(executor);
  auto const last = latest(now, by);
  auto const got = take(now, last);
  result<void> out;
  if (!got.granted) out = refusal(got.at - now);
  if (got.granted && got.at > now) out = co_await wait(executor, now, got.at, last);
  co_return out;
}

asio::awaitable<result<void>> token_bucket::wait(asio::any_io_executor executor, time_point since,
                                                 time_point turn, time_point latest) {
  waited_.add();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  timer clock(executor);
  result<void> out;
  for (;;) {
    boost::system::error_code stopped;
    co_await clock.async_wait_until(turn, asio::redirect_error(asio::use_awaitable, stopped));
    auto const now = clock.now();
    if (stopped) {
      failure f = refusal(0ns);
      f.code = errc::cancelled;
      f.rejected = false;
      f.elapsed = now - since;
      out = f;
      break;
    }
    if (turn >= held_until_.load(std::memory_order_relaxed)) break;
    // A pause was asked for after this turn had been given.
    auto const again = take(now, latest);
    turn = again.at;
    if (again.granted) continue;
    failure f = refusal(again.at - now);
    f.rejected = false;
    f.elapsed = now - since;
    out = f;
    break;
  }
  co_return out;
}

void token_bucket::hold_off(time_point until) noexcept {
  auto held = held_until_.load(std::memory_order_relaxed);
  while (held < until && !held_until_.compare_exchange_weak(held, until, std::memory_order_relaxed)) {
  }
  if (held >= until) return;
  auto state = state_.load(std::memory_order_relaxed);
  while (!state_.compare_exchange_weak(state, meter_.held_off(state, until), std::memory_order_relaxed)) {
  }
  held_off_.add();
}

void token_bucket::on_failure(failure const& why, time_point now) noexcept {
  if (why.code == errc::remote_throttled && why.retry_after > 0ns)
    hold_off(saturating_add(now, std::min(why.retry_after, max_hold_off_)));
}

token_bucket_snapshot token_bucket::snapshot() const noexcept {
  token_bucket_snapshot s;
  s.waited = waited_.read();
  s.granted = granted_.read();
  s.refused = refused_.read();
  s.held_off = held_off_.read();
  return s;
}

layer_description detail::token_bucket_layer::describe(call_figures const& inside) const {
  auto const& rate = owner_->rate();
  auto const seconds = [](duration d) { return std::chrono::duration<double>(d).count(); };
  auto figures = inside;
  if (inside.worst_time < duration::max() - owner_->max_wait()) figures.worst_time += owner_->max_wait();
  return {"token_bucket", owner_->name(),
          fmt::format("{} in {:g} s, burst {}, {:g} s wait", rate.limit.get(), seconds(rate.per), rate.burst,
                      seconds(owner_->max_wait())),
          figures};
}

}  // namespace redoubt
