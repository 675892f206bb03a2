// SPDX-License-Identifier: BSL-1.0
//
// A lifecycle with a clock that a test moves by hand. Every step checks the machine's invariants.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include <redoubt/fsm/lifecycle.hpp>

namespace test {

using redoubt::duration;
using redoubt::errc;
using redoubt::failure;
using redoubt::lifecycle;
using redoubt::lifecycle_options;
using redoubt::link_action;
using redoubt::link_actions;
using redoubt::link_state;
using redoubt::phase;
using redoubt::time_point;
using kind = link_action::kind;
using kinds = std::vector<kind>;

inline kinds kinds_of(link_actions const& actions) {
  kinds out;
  for (auto const& a : actions) out.push_back(a.what);
  return out;
}

/// A failure as the transport reports it.
inline failure why(errc code) { return failure{.code = code, .effect = redoubt::effect::none}; }

struct link_rig {
  explicit link_rig(lifecycle_options options = {}, std::uint64_t seed = 1) : life(options, seed) {}

  lifecycle life;
  time_point now{std::chrono::hours(1)};

  kinds did(link_actions const& actions) const {
    EXPECT_TRUE(life.check());
    for (auto const& a : actions) {
      if (a.what == kind::drop) continue;  // speaks of the epochs before
      EXPECT_EQ(a.epoch, life.epoch()) << "an action of an epoch that has ended";
    }
    return kinds_of(actions);
  }
  kinds demand() { return did(life.demand(now)); }
  kinds resolved() { return did(life.on_resolved(life.epoch(), now)); }
  kinds failed(errc code = errc::connection_refused) {
    return did(life.on_attempt_failed(life.epoch(), why(code), now));
  }
  kinds connected() { return did(life.on_connected(life.epoch(), now)); }
  kinds secured() { return did(life.on_secured(life.epoch(), now)); }
  kinds greeted() { return did(life.on_greeted(life.epoch(), now)); }
  kinds lost(bool wanted = false, errc code = errc::connection_lost) {
    return did(life.on_lost(life.epoch(), why(code), wanted, now));
  }
  kinds on_time(bool wanted = false) { return did(life.on_time(wanted, now)); }

  void make_ready() {
    (void)demand();
    (void)resolved();
    (void)connected();
    (void)greeted();
    EXPECT_EQ(life.state(), link_state::ready);
  }
};

}  // namespace test
