// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/address_race.hpp>

#include <algorithm>
#include <utility>

namespace redoubt {
namespace {

/// Addresses of one family, and of all others.
std::vector<std::size_t> of_family(std::vector<int> const& families, int family, bool same) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < families.size(); ++i) {
    if ((families[i] == family) == same) out.push_back(i);
  }
  return out;
}

void shuffle(std::vector<std::size_t>& list, random_source& random) {
  for (auto left = list.size(); left > 1; --left) std::swap(list[left - 1], list[random.below(left)]);
}

}  // namespace

address_race::address_race(std::vector<int> const& families, time_point now, time_point by,
                           random_source random, race_options options)
    : options_(options),
      states_(families.size(), state::waiting),
      due_(now),
      by_(by) {
  if (families.empty()) return;
  auto preferred = of_family(families, families.front(), true);
  auto others = of_family(families, families.front(), false);
  shuffle(preferred, random);
  shuffle(others, random);
  for (std::size_t i = 0; i < std::max(preferred.size(), others.size()); ++i) {
    if (i < preferred.size()) order_.push_back(preferred[i]);
    if (i < others.size()) order_.push_back(others[i]);
  }
}

std::optional<std::size_t> address_race::next(time_point now) {
  if (won_ || started_ == order_.size() || now < due_) return std::nullopt;
  auto const share = deadline(by_).left(now) / static_cast<duration::rep>(order_.size() - started_);
  due_ = saturating_add(now, std::clamp(share, options_.delay_min, options_.delay_max));
  auto const address = order_[started_++];
  states_[address] = state::tried;
  return address;
}

void address_race::on_failed(std::size_t address, errc why, time_point now) {
  if (won_ || states_[address] != state::tried) return;
  states_[address] = state::failed;
  ++failed_;
  if (why_ != errc::connection_refused) why_ = why;
  due_ = std::min(due_, now);
}

bool address_race::on_connected(std::size_t address) {
  if (won_ || states_[address] != state::tried) return false;
  states_[address] = state::won;
  won_ = true;
  return true;
}

std::optional<time_point> address_race::next_wakeup() const noexcept {
  if (won_ || started_ == order_.size()) return std::nullopt;
  return due_;
}

bool address_race::check() const noexcept {
  auto const count = [this](state s) {
    return static_cast<std::size_t>(std::count(states_.begin(), states_.end(), s));
  };
  return order_.size() == states_.size() && count(state::failed) == failed_ &&
         count(state::waiting) == order_.size() - started_ && count(state::won) == (won_ ? 1U : 0U);
}

}  // namespace redoubt
