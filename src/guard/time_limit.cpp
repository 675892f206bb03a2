// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/time_limit.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <redoubt/core/named_detail.hpp>
#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void time_limit::options::validate() const {
  detail::require_option(limit >= 1us && limit <= 1h, "time_limit", "limit", limit, "must be 1 us to 1 h");
}

time_limit::core::core(options o)
    : name(std::move(o.name)),
      limit(o.limit),
      detail(detail::named_detail(name)) {}

time_limit::time_limit(options o) {
  o.validate();
  core_ = std::make_shared<core>(std::move(o));
}

failure time_limit::ended(core& c, end why, bool own, bool waiting, duration elapsed) noexcept {
  failure f;
  f.elapsed = elapsed;
  f.detail = c.detail;
  f.effect = waiting ? effect::none : effect::unknown;
  f.phase = waiting ? phase::queue : phase::read;
  if (why == end::cancelled) {
    f.code = errc::cancelled;
    c.cancelled.add();
    return f;
  }
  f.code = own ? errc::limit_exceeded : errc::deadline_exceeded;
  f.rejected = waiting;
  (waiting ? c.saturated : own ? c.own : c.callers).add();
  return f;
}

failure time_limit::too_late(core& c) noexcept {
  c.callers.add();
  failure f;
  f.code = errc::deadline_exceeded;
  f.effect = effect::none;
  f.rejected = true;
  f.detail = c.detail;
  return f;
}

time_limit_snapshot time_limit::snapshot() const noexcept {
  time_limit_snapshot s;
  s.in_time = core_->in_time.read();
  s.own = core_->own.read();
  s.callers = core_->callers.read();
  s.saturated = core_->saturated.read();
  s.cancelled = core_->cancelled.read();
  s.orphans = core_->orphans.load(std::memory_order_relaxed);
  return s;
}

duration time_limit::limit() const noexcept { return core_->limit; }
std::string const& time_limit::name() const noexcept { return core_->name; }

template <int Rank>
layer_description time_limit_layer<Rank>::describe(call_figures const& inside) const {
  auto figures = inside;
  figures.worst_time = std::min(figures.worst_time, core_->limit);
  figures.outlives_answer = true;
  auto const ms = std::chrono::duration<double, std::milli>(core_->limit).count();
  return {Rank == layer_rank::total ? "total" : "limit", core_->name, fmt::format("{:g} ms", ms), figures};
}

template class time_limit_layer<layer_rank::limit>;
template class time_limit_layer<layer_rank::total>;

time_limit_layer<layer_rank::limit> limit(duration longest) {
  return time_limit_layer<layer_rank::limit>(time_limit({.name = "limit", .limit = longest}));
}

time_limit_layer<layer_rank::total> total(duration longest) {
  return time_limit_layer<layer_rank::total>(time_limit({.name = "total", .limit = longest}));
}

}  // namespace redoubt
