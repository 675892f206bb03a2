// SPDX-License-Identifier: BSL-1.0
//
// A breaker's machine used as the guard uses it: the lock-free questions first.
#pragma once

#include <optional>
#include <vector>

#include <redoubt/fsm/breaker_state.hpp>

namespace redoubt::testing {

struct breaker_rig {
  explicit breaker_rig(breaker_settings const& settings) : machine(settings) {}

  breaker_decision ask(time_point now) {
    breaker_decision out;
    if (auto const pass = machine.pass_at_once()) {
      out.admitted = true;
      out.pass = *pass;
    } else if (auto const no = machine.refuse_at_once(now)) {
      out = *no;
    } else {
      out = machine.admit(now, random);
    }
    collect();
    return out;
  }

  void end(breaker_pass pass, breaker_outcome outcome, time_point now, duration took = {},
           errc cause = errc::connection_lost) {
    if (outcome == breaker_outcome::neutral && machine.neutral_at_once(pass)) return;
    if (outcome != breaker_outcome::success || !machine.succeed_at_once(pass, took, now)) {
      machine.record(pass, outcome, took, cause, now, random);
    }
    collect();
  }

  /// A call that vanished.
  void abandon(breaker_pass pass) {
    machine.give_up(pass);
    collect();
  }

  /// A call that is admitted and ends at once.
  void call(breaker_outcome outcome, time_point now, duration took = {}, errc cause = errc::connection_lost) {
    auto const asked = ask(now);
    if (asked.admitted) end(asked.pass, outcome, now, took, cause);
  }

  void collect() {
    while (auto const t = machine.take_transition()) transitions.push_back(*t);
    machine.check();
  }

  [[nodiscard]] breaker_phase phase() const { return machine.snapshot().phase; }

  breaker_state machine;
  random_source random{1};
  std::vector<breaker_transition> transitions{};
};

}  // namespace redoubt::testing
