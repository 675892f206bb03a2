// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/adaptive_throttle.hpp>

#include <mutex>

#include <fmt/format.h>

#include <redoubt/core/named_detail.hpp>
#include <redoubt/fsm/breaker_options.hpp>

namespace redoubt {

void adaptive_throttle::options::validate() const { ratio.validate(); }

adaptive_throttle::adaptive_throttle(options o)
    : name_(std::move(o.name)),
      options_(o.ratio),
      seeds_(o.seed),
      detail_(detail::named_detail(name_)),
      ratio_(o.ratio) {}

result<void> adaptive_throttle::try_enter(time_point now) {
  // Only results raise the share, and they store it; so while it is zero there is nothing to compute.
  if (share_.load(std::memory_order_relaxed) > 0) {
    auto random = seeds_.next();
    std::unique_lock lock(mutex_);
    bool const sent = ratio_.admit(now, random);
    share_.store(ratio_.refused_share(now), std::memory_order_relaxed);
    lock.unlock();
    if (!sent) {
      refused_.add();
      failure f;
      f.code = errc::rate_limited;
      f.effect = effect::none;
      f.phase = phase::queue;
      f.rejected = true;
      f.detail = detail_;
      return f;
    }
  }
  admitted_.add();
  return {};
}

void adaptive_throttle::record(time_point now, bool accepted) noexcept {
  (accepted ? accepted_ : failed_).add();
  std::scoped_lock lock(mutex_);
  ratio_.record(now, accepted);
  share_.store(ratio_.refused_share(now), std::memory_order_relaxed);
}

std::optional<bool> adaptive_throttle::accepted(failure const& why) noexcept {
  if (why.code == errc::remote_throttled) return false;
  switch (breaker_outcome_of(why, breaker_capability::writes)) {
    case breaker_outcome::success: return true;
    case breaker_outcome::failure: return false;
    case breaker_outcome::neutral: break;
  }
  return std::nullopt;
}

void adaptive_throttle::on_failure(failure const& why, time_point now) noexcept {
  if (auto const said = accepted(why)) record(now, *said);
}

adaptive_throttle_snapshot adaptive_throttle::snapshot() const {
  adaptive_throttle_snapshot s;
  s.accepted = accepted_.read();
  s.failed = failed_.read();
  s.refused = refused_.read();
  s.admitted = admitted_.read();
  s.refused_share = share_.load(std::memory_order_relaxed);
  return s;
}

layer_description detail::throttle_layer::describe(call_figures const& inside) const {
  auto const& o = owner_->ratio();
  auto const seconds = std::chrono::duration<double>(o.window).count();
  return {"adaptive_throttle", owner_->name(),
          fmt::format("K {:g}, {:g} s window, refuses at most {:g} %", o.multiplier, seconds, o.most * 100),
          inside};
}

}  // namespace redoubt
