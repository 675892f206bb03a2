// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/retry.hpp>

#include <fmt/format.h>

namespace redoubt {

failure retry::out_of_time() noexcept {
  failure f;
  f.code = errc::retries_exhausted;
  f.effect = effect::none;
  f.phase = phase::queue;
  return f;
}

retry::begun retry::begin(time_point start, deadline by, repeat allowed) noexcept {
  return {retry_plan(options_, start, by), seeds_.next(), allowed};
}

void retry::succeed() noexcept {
  succeeded_.add();
  if (budget_ != nullptr) budget_->on_success();
}

failure retry::cancelled(begun const& one, failure last, time_point now) noexcept {
  not_repeatable_.add();
  last.code = errc::cancelled;
  return one.plan.sum_up(std::move(last), now);
}

bool retry::again(begun& one, failure const& last, time_point now) noexcept {
  using kind = retry_decision::kind;
  auto next = one.plan.after(last, one.allowed, now, one.random);
  // Asked before the pause: nobody waits for an attempt that is not made.
  if (next.what == kind::again && budget_ != nullptr && !budget_->try_take(last, now))
    next.what = kind::no_budget;
  switch (next.what) {
    case kind::again: one.pause_until = next.at; return true;
    case kind::not_repeatable: not_repeatable_.add(); break;
    case kind::none_left: none_left_.add(); break;
    case kind::no_time: no_time_.add(); break;
    case kind::no_budget: no_budget_.add(); break;
  }
  return false;
}

retry_snapshot retry::snapshot() const noexcept {
  retry_snapshot s;
  s.succeeded = succeeded_.read();
  s.not_repeatable = not_repeatable_.read();
  s.none_left = none_left_.read();
  auto const too_late = too_late_.read();
  s.no_time = no_time_.read() + too_late;
  s.no_budget = no_budget_.read();
  auto const repeats = repeats_.read();
  s.operations = operations_.read();
  s.attempts = s.operations - too_late + repeats;
  return s;
}

layer_description detail::retry_layer::describe(call_figures const& inside) const {
  auto const& o = owner_->options_;
  auto const seconds = [](duration d) { return std::chrono::duration<double>(d).count(); };
  auto figures = inside;
  // It ends no attempt that takes no notice of its deadline; a limit inside does.
  if (inside.worst_time != duration::max()) figures.worst_time = o.total;
  auto const unbounded = ~std::uint64_t{0};
  figures.sends =
      inside.sends > unbounded / owner_->attempts() ? unbounded : inside.sends * owner_->attempts();
  auto text = fmt::format("{} attempts in {:g} s, pauses {:g} to {:g} s", owner_->attempts(),
                          seconds(o.total), seconds(o.pause.base), seconds(o.pause.cap));
  if (o.attempt_timeout) text += fmt::format(", {:g} s an attempt", seconds(*o.attempt_timeout));
  text += allowed_ == repeat::idempotent ? ", idempotent" : ", only what was not executed";
  if (owner_->budget_ != nullptr) text += ", shared budget";
  return {"retry", "", std::move(text), figures};
}

}  // namespace redoubt
