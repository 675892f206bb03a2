// SPDX-License-Identifier: BSL-1.0
//
// Every sequence of inputs to a lifecycle up to a depth, results of ended attempts included.
#include <redoubt/fsm/lifecycle.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using redoubt::errc;
using redoubt::failure;
using redoubt::lifecycle;
using redoubt::link_action;
using redoubt::link_actions;
using redoubt::link_state;
using redoubt::time_point;

void require(bool ok, char const* what) {
  if (!ok) throw std::logic_error(what);
}

redoubt::lifecycle_options options(bool secure) {
  redoubt::lifecycle_options out;
  out.connect_timeout = 100ms;
  out.stall_limit = 300ms;
  out.reconnect = {.base = 10ms, .cap = 40ms};
  out.refused_pause = 100ms;
  out.secure = secure;
  return out;
}

constexpr std::array names{"demand",      "resolved", "failed",   "connected", "greeted", "refused", "lost",
                           "lost_wanted", "stalled",  "answer",   "retire",    "wake_up", "1ms",     "60ms",
                           "close",       "old_open", "old_lost", "old_fail",  "secured"};

class world {
 public:
  explicit world(bool secure) : secure_(secure) {}

  bool apply(std::size_t what) {
    auto const state = life_.state();
    auto const epoch = life_.epoch();
    auto const stale = epoch == 0 ? 0 : epoch - 1;
    switch (what) {
      case 0: return took(life_.demand(now_));
      case 1: return took(life_.on_resolved(epoch, now_));
      case 2: return took(life_.on_attempt_failed(epoch, why(errc::connection_refused), now_));
      case 3: return took(life_.on_connected(epoch, now_));
      case 4: return took(life_.on_greeted(epoch, now_));
      case 5: return took(life_.on_refused(epoch, why(errc::server_error), now_));
      case 6: return took(life_.on_lost(epoch, why(errc::connection_lost), false, now_));
      case 7: return took(life_.on_lost(epoch, why(errc::connection_lost), true, now_));
      case 8:
        if (state == link_state::ready) now_ += 300ms;  // a stall takes its time
        return took(life_.on_lost(epoch, why(errc::connection_stalled), true, now_));
      case 9:
        if (state != link_state::ready) return false;
        life_.on_answer();
        answered_ = true;
        return true;
      case 10: {
        bool const should = life_.should_retire(now_);
        if (!should) return false;
        require(state == link_state::ready, "only a ready connection retires");
        require(!last_retired_ || now_ - *last_retired_ >= 10ms, "at most one retirement per backoff step");
        last_retired_ = now_;
        return took(life_.retire(true, now_));
      }
      case 11: {
        auto const next = life_.next_wakeup();
        if (!next) return false;
        now_ = std::max(now_, *next);
        bool const acted = took(life_.on_time(true, now_));
        require(acted || life_.state() != state, "a wake-up that does nothing would be a hot loop");
        return true;
      }
      case 12: return pass(1ms);
      case 13: return pass(60ms);
      case 14:
        if (state == link_state::closed) return false;
        return took(life_.close());
      // Results of an attempt that has ended must change nothing at all.
      case 15: return ignored(life_.on_connected(stale, now_), life_.on_greeted(stale, now_));
      case 16:
        return ignored(life_.on_lost(stale, why(errc::connection_lost), true, now_),
                       life_.on_refused(stale, why(errc::server_error), now_));
      case 17:
        return ignored(life_.on_attempt_failed(stale, why(errc::connect_failed), now_),
                       life_.on_resolved(stale, now_));
      case 18: return took(life_.on_secured(epoch, now_));
      default: return false;
    }
  }

  void check() const {
    require(life_.check(), "an invariant of the machine");
    auto const s = life_.snapshot();
    require(s.attempts == attempts_, "the number of attempts");
    require(s.attempts >= s.readied + s.failed, "an attempt ends once");
    require(s.attempts - s.readied - s.failed <= (closed() ? s.attempts : 1), "one attempt at a time");
    auto const next = life_.next_wakeup();
    bool const limited = life_.state() == link_state::resolving || life_.state() == link_state::connecting ||
                         life_.state() == link_state::securing || life_.state() == link_state::handshaking;
    require(next.has_value() == limited, "a timer exactly while the peer is waited for");
    if (next) require(*next <= now_ + 300ms, "every wait has an end");
    auto const no = life_.rejection(now_);
    if (no) {
      require(no->rejected && no->effect == redoubt::effect::none,
              "a rejection is ours, and nothing was sent");
      require(closed() || (no->retry_after > 0ns && no->retry_after <= 200ms),
              "0 < retry_after <= the longest pause");
    }
    require(!closed() || no.has_value(), "closed means closed");
  }

 private:
  static failure why(errc code) { return failure{.code = code, .effect = redoubt::effect::none}; }
  [[nodiscard]] bool closed() const { return life_.state() == link_state::closed; }

  bool pass(redoubt::duration d) {
    now_ += d;
    (void)took(life_.on_time(true, now_));
    return true;
  }

  static bool ignored(link_actions const& a, link_actions const& b) {
    require(a.empty() && b.empty(), "results of an older epoch are ignored");
    return false;  // nothing changed: no need to look behind it
  }

  bool took(link_actions const& actions) {
    for (auto const& a : actions) {
      require(a.what == link_action::kind::drop || a.epoch == life_.epoch(),
              "an action of the present epoch");
      require(a.epoch >= newest_, "epochs do not go back");
      newest_ = a.epoch;
      switch (a.what) {
        case link_action::kind::resolve:
          ++attempts_;
          require(!closed(), "no attempt after close");
          // Two at the same instant: the one that failed and the one that answers a loss. A third would be a
          // hot loop.
          at_this_instant_ = last_attempt_ == now_ && !answered_ ? at_this_instant_ + 1 : 1;
          answered_ = false;
          last_attempt_ = now_;
          break;
        case link_action::kind::connect: require(a.until >= now_, "time is left"); break;
        case link_action::kind::secure: require(secure_, "nobody asked for TLS"); break;
        case link_action::kind::open: require(life_.state() == link_state::ready, "open means ready"); break;
        case link_action::kind::fail_waiting:
          require(life_.cause().code != errc::unspecified, "calls fail with a reason");
          require(life_.cause().effect == redoubt::effect::none, "waiting calls have no effect");
          break;
        case link_action::kind::greet:
        case link_action::kind::drop: break;
      }
    }
    return !actions.empty();
  }

  bool secure_;
  lifecycle life_{options(secure_), 3};
  time_point now_{1h};
  std::uint64_t attempts_ = 0;
  std::uint64_t newest_ = 0;
  time_point last_attempt_{};
  int at_this_instant_ = 0;
  bool answered_ = false;
  std::optional<time_point> last_retired_;
};

std::size_t nodes = 0;
std::vector<std::size_t> path;

void explore(world const& from, int depth) {
  for (std::size_t what = 0; what < names.size(); ++what) {
    path.push_back(what);
    auto next = from;
    if (next.apply(what)) {
      ++nodes;
      next.check();
      if (depth > 1) explore(next, depth - 1);
    }
    path.pop_back();
  }
}

void explore_all(bool secure) {
  int depth = 9;
  if (auto const* more = std::getenv("REDOUBT_EXPLORE_DEPTH")) depth += std::atoi(more);
  nodes = 0;
  path.clear();
  try {
    explore(world(secure), depth);
  } catch (std::logic_error const& broken) {
    std::string text;
    for (auto const step : path) text += std::string(" ") + names[step];
    ADD_FAILURE() << broken.what() << " after" << text;
  }
  std::printf("%zu sequences\n", nodes);
  EXPECT_GT(nodes, 100'000u);
}

TEST(lifecycle_explore, every_sequence_keeps_the_rules) { explore_all(false); }

TEST(lifecycle_explore, C19_with_tls_too) { explore_all(true); }

}  // namespace
