// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/retry_budget.hpp>

namespace redoubt {

std::uint32_t retry_budget::price(failure const& why) noexcept {
  bool const timed_out = why.code == errc::deadline_exceeded || why.code == errc::limit_exceeded ||
                         why.code == errc::connection_stalled;
  return timed_out && why.effect == effect::unknown ? 2 : 1;
}

bool retry_budget::try_take(failure const& why, time_point now) noexcept {
  bool paid = false;
  {
    std::scoped_lock lock(mutex_);
    paid = tokens_.take(price(why), succeeded_.read(), now);
  }
  (paid ? granted_ : refused_).add();
  return paid;
}

retry_budget_snapshot retry_budget::snapshot() const noexcept {
  retry_budget_snapshot s;
  s.granted = granted_.read();
  s.refused = refused_.read();
  s.succeeded = succeeded_.read();
  std::scoped_lock lock(mutex_);
  s.balance = tokens_.balance();
  return s;
}

}  // namespace redoubt
