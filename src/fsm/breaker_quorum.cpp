// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/breaker_quorum.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void breaker_quorum_options::validate() const {
  detail::require_option(nodes >= 2 && nodes <= 100, "breaker_quorum", "nodes", std::uint64_t{nodes},
                         "must be 2 to 100");
  detail::require_option(window >= 1s && window <= 1h, "breaker_quorum", "window", window,
                         "must be 1 s to 1 h");
}

breaker_quorum::breaker_quorum(breaker_quorum_options const& options, std::string own)
    : options_((options.validate(), options)),
      own_(std::move(own)) {}

std::optional<time_point> breaker_quorum::on_reports(std::span<breaker_report const> reports,
                                                     time_point asked) {
  std::vector<breaker_report> news;
  for (auto const& r : reports) {
    bool const in_window = r.age >= 0ns && r.age < options_.window;
    if (r.node != own_ && in_window && asked - r.age > settled_) news.push_back(r);
  }
  // The youngest of each node, then the youngest nodes.
  std::sort(news.begin(), news.end(),
            [](auto const& a, auto const& b) { return std::pair(a.node, a.age) < std::pair(b.node, b.age); });
  auto const same = [](auto const& a, auto const& b) { return a.node == b.node; };
  news.erase(std::unique(news.begin(), news.end(), same), news.end());
  counts_.others = static_cast<std::uint32_t>(news.size());
  if (news.size() < options_.nodes) return std::nullopt;
  ++counts_.quorums;
  auto const last = news.begin() + static_cast<std::ptrdiff_t>(options_.nodes - 1);
  std::nth_element(news.begin(), last, news.end(),
                   [](auto const& a, auto const& b) { return a.age < b.age; });
  return saturating_add(asked, options_.window - last->age);
}

void breaker_quorum::settle(time_point now) noexcept { settled_ = std::max(settled_, now); }
}  // namespace redoubt
