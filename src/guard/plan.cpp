// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/plan.hpp>

#include <ostream>

#include <fmt/format.h>

#include <redoubt/core/option_error.hpp>

namespace redoubt {
namespace {

std::string text_of(duration d) {
  if (d == duration::max()) return "no bound";
  return fmt::format("{:g} ms", std::chrono::duration<double, std::milli>(d).count());
}

std::string text_of(std::uint64_t n) { return n == ~std::uint64_t{0} ? "no bound" : fmt::format("{}", n); }

}  // namespace

void plan::require_within(duration budget) const {
  auto const worst = worst_case().worst_time;
  detail::require_option(worst <= budget, "plan", "worst_time", text_of(worst),
                         fmt::format("must be at most {}", text_of(budget)));
}

std::string plan::text() const {
  std::string out;
  for (auto at = layers.rbegin(); at != layers.rend(); ++at) {
    out += at->kind;
    if (!at->name.empty() && at->name != at->kind) out += fmt::format(" \"{}\"", at->name);
    if (!at->settings.empty()) out += fmt::format(": {}", at->settings);
    out += '\n';
  }
  auto const worst = worst_case();
  out += fmt::format("worst case: {} until the answer, {} at once, {} sent per call\n",
                     text_of(worst.worst_time), text_of(worst.concurrency), text_of(worst.sends));
  return out;
}

std::ostream& operator<<(std::ostream& out, plan const& p) { return out << p.text(); }

}  // namespace redoubt
