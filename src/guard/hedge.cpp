// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/hedge.hpp>

#include <fmt/format.h>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

namespace {

extra_tokens_options tokens_of(hedge::options const& o) {
  return {.ratio = o.ratio, .per_second = 0, .capacity = o.burst};
}

}  // namespace

void hedge::options::validate() const {
  detail::require_option(delay.get() >= 1us && delay.get() <= 1h, "hedge", "delay", delay.get(),
                         "must be 1 us to 1 h");
  detail::require_option(ratio >= 0 && ratio <= 1, "hedge", "ratio", ratio, "must be 0 to 1");
  detail::require_option(burst >= 2 && burst <= 10000, "hedge", "burst", std::uint64_t{burst},
                         "must be 2 to 10000");
}

hedge::hedge(options o) : options_((o.validate(), std::move(o))), tokens_(tokens_of(options_)) {}

bool hedge::try_second(time_point now) noexcept {
  bool paid = false;
  {
    std::scoped_lock lock(mutex_);
    paid = tokens_.take(1, operations_.read(), now);
  }
  (paid ? second_ : no_budget_).add();
  return paid;
}

hedge_snapshot hedge::snapshot() const noexcept {
  hedge_snapshot s;
  s.second_won = second_won_.read();
  s.second = second_.read();
  s.no_budget = no_budget_.read();
  s.ended = ended_.read();
  s.attempts = attempts_.read();
  s.operations = operations_.read();
  return s;
}

layer_description detail::hedge_layer::describe(call_figures const& inside) const {
  auto figures = inside;
  auto const unbounded = ~std::uint64_t{0};
  figures.sends = inside.sends > unbounded / 2 ? unbounded : inside.sends * 2;
  if (inside.worst_time < duration::max() - owner_->delay()) figures.worst_time += owner_->delay();
  figures.outlives_answer = true;
  return {"hedge", owner_->name(),
          fmt::format("a second attempt after {:g} s, at most {:g} %",
                      std::chrono::duration<double>(owner_->delay()).count(), owner_->ratio() * 100),
          figures};
}

}  // namespace redoubt
