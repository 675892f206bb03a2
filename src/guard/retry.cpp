// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/retry.hpp>

namespace redoubt {

failure retry::out_of_time() noexcept {
  failure f;
  f.code = errc::retries_exhausted;
  f.effect = effect::none;
  f.phase = phase::queue;
  return f;
}

void retry::count(retry_decision::kind what) noexcept {
  switch (what) {
    case retry_decision::kind::again:  // cancelled during the pause
    case retry_decision::kind::not_repeatable: not_repeatable_.add(); break;
    case retry_decision::kind::none_left: none_left_.add(); break;
    case retry_decision::kind::no_time: no_time_.add(); break;
    case retry_decision::kind::no_budget: no_budget_.add(); break;
  }
}

retry_snapshot retry::snapshot() const noexcept {
  retry_snapshot s;
  s.succeeded = succeeded_.read();
  s.not_repeatable = not_repeatable_.read();
  s.none_left = none_left_.read();
  s.no_time = no_time_.read();
  s.no_budget = no_budget_.read();
  s.attempts = attempts_.read();
  s.operations = operations_.read();
  return s;
}

}  // namespace redoubt
