// SPDX-License-Identifier: BSL-1.0
//
// Every sequence of questions, results and times up to a depth, results of ended generations and of trials
// given up included.
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fsm/breaker_rig.hpp"

namespace {

using namespace std::chrono_literals;
using redoubt::breaker_mode;
using redoubt::breaker_outcome;
using redoubt::breaker_pass;
using redoubt::breaker_phase;
using redoubt::breaker_settings;
using redoubt::time_point;

void require(bool ok, char const* what) {
  if (!ok) throw std::logic_error(what);
}

struct node {
  redoubt::testing::breaker_rig breaker;
  time_point now{1h};
  std::vector<breaker_pass> out{};
  time_point trial_ends{};
  bool trial_out = false;
  std::uint32_t trial = 0;
  std::size_t seen = 0;  // transitions looked at
};

class explorer {
 public:
  explicit explorer(breaker_settings const& s) : settings_(s) {
    walk(node{redoubt::testing::breaker_rig(s)}, 7);
  }
  [[nodiscard]] std::size_t states() const { return states_; }

 private:
  void walk(node const& n, int depth) {
    ++states_;
    if (depth == 0) return;
    ask(n, depth);
    for (std::size_t i = 0; i < n.out.size(); ++i) {
      for (auto const o : {breaker_outcome::success, breaker_outcome::failure, breaker_outcome::neutral}) {
        end(n, i, o, depth);
      }
    }
    advise(n, depth);
    for (auto const at : {n.now + 1ms, n.breaker.machine.next_wakeup()}) {
      if (at == time_point::max() || at <= n.now) continue;
      node next = n;
      next.now = at;
      ask(next, depth);
    }
  }

  void ask(node n, int depth) {
    if (n.out.size() >= 3) return;
    auto const before = n.breaker.phase();
    auto const got = n.breaker.ask(n.now);
    if (got.admitted) {
      if (got.pass.trial != 0) {
        require(!n.trial_out || n.now >= n.trial_ends, "one trial at a time");
        require(got.limit.is_set() && got.limit.at() > n.now, "a trial has a limit");
        n.trial_out = true;
        n.trial = got.pass.trial;
        n.trial_ends = got.limit.at() + breaker_settings::lease_grace;
      } else if (got.pass.counts) {
        require(n.breaker.phase() == breaker_phase::closed || n.breaker.phase() == breaker_phase::recovering,
                "only a closed breaker admits");
      } else {
        require(settings_.mode == breaker_mode::metrics_only, "uncounted only where nothing is refused");
      }
      n.out.push_back(got.pass);
    } else {
      require(settings_.mode == breaker_mode::normal, "metrics_only refuses nobody");
      require(before != breaker_phase::closed, "a closed breaker refuses nobody");
      require(got.retry_after > 0ns, "a refusal says when to come back");
    }
    follow(std::move(n), depth);
  }

  void advise(node n, int depth) {
    auto const before = n.breaker.machine.snapshot();
    bool const opened = n.breaker.machine.advise(n.now + 1ms, n.now, n.breaker.random);
    n.breaker.collect();
    auto const after = n.breaker.machine.snapshot();
    require(after.opened == before.opened + (opened || after.lost_trials > before.lost_trials ? 1 : 0),
            "an advice opens once, or not at all");
    require(after.advised == before.advised + (opened ? 1 : 0), "an advice that was taken is counted");
    require(!opened || after.phase == breaker_phase::open, "an advice that was taken opens");
    require(!opened || n.breaker.machine.next_wakeup() <= n.now + 1ms, "not for longer than it said");
    require(!opened || before.phase == breaker_phase::closed || before.phase == breaker_phase::recovering,
            "an advice cuts no trial short");
    if (opened || n.breaker.transitions.size() > n.seen) follow(std::move(n), depth);
  }

  void end(node n, std::size_t which, breaker_outcome o, int depth) {
    auto const pass = n.out[which];
    n.out.erase(n.out.begin() + static_cast<std::ptrdiff_t>(which));
    auto const before = n.breaker.machine.snapshot();
    n.breaker.end(pass, o, n.now);
    auto const after = n.breaker.machine.snapshot();
    bool const trial = pass.trial != 0 && n.trial_out && pass.trial == n.trial && n.now < n.trial_ends;
    bool const stale = !pass.counts || pass.generation != before.generation;
    bool const timed_out = n.trial_out && n.now >= n.trial_ends;
    if (stale && !timed_out && before.phase != breaker_phase::recovering) {
      require(after.phase == before.phase && after.generation == before.generation,
              "stale news change nothing");
    }
    if (before.phase == breaker_phase::half_open && after.phase != breaker_phase::half_open) {
      require(trial || timed_out, "only the trial, or its end, ends half-open");
      require(timed_out || o != breaker_outcome::neutral, "a neutral trial decides nothing");
    }
    require(after.succeeded + after.failed + after.neutral ==
                before.succeeded + before.failed + before.neutral + 1,
            "each result is counted once");
    if (trial) n.trial_out = false;
    follow(std::move(n), depth);
  }

  void follow(node n, int depth) {
    auto const& list = n.breaker.transitions;
    for (; n.seen < list.size(); ++n.seen) {
      auto const& t = list[n.seen];
      require(t.from != t.to, "a change changes something");
      require(n.seen == 0 || list[n.seen - 1].to == t.from, "changes are told in order, none is left out");
      require(t.to != breaker_phase::half_open || t.from == breaker_phase::open,
              "half-open comes after open");
      if (t.from == breaker_phase::half_open) n.trial_out = false;
    }
    walk(n, depth - 1);
  }

  breaker_settings settings_;
  std::size_t states_ = 0;
};

breaker_settings small() {
  breaker_settings s;
  s.consecutive = 1;
  s.open = {.floor = 1ms, .base = 1ms, .cap = 4ms};
  s.trial_limit = 1ms;
  return s;
}

TEST(breaker_explore, holds_in_every_sequence_of_seven_steps) {
  EXPECT_GT(explorer(small()).states(), 10'000u);
}

TEST(breaker_explore, holds_with_a_ramp_and_two_failures) {
  auto s = small();
  s.consecutive = 2;
  s.ramp = redoubt::breaker_ramp{.start = 0.5, .length = 2ms};
  EXPECT_GT(explorer(s).states(), 10'000u);
}

TEST(breaker_explore, holds_by_ratio) {
  auto s = small();
  s.consecutive.reset();
  s.ratio = redoubt::breaker_ratio{.minimum_calls = 2, .window = 10ms};
  EXPECT_GT(explorer(s).states(), 10'000u);
}

TEST(breaker_explore, holds_when_it_only_measures) {
  auto s = small();
  s.mode = breaker_mode::metrics_only;
  EXPECT_GT(explorer(s).states(), 10'000u);
}

}  // namespace
