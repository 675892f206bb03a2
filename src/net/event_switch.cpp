// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/event_switch.hpp>

namespace redoubt::detail {
namespace {

/// The switches that this thread is inside of: a sink may cause an event of another client.
struct turn {
  event_switch const* who;
  turn const* outer;
};
thread_local turn const* innermost = nullptr;

bool inside(event_switch const* who) noexcept {
  for (auto const* t = innermost; t != nullptr; t = t->outer) {
    if (t->who == who) return true;
  }
  return false;
}

}  // namespace

void event_switch::on(event const& e) noexcept {
  if (inside(this)) {  // the sink itself has caused it
    if (auto* const sink = target_.load()) sink->on(e);
    return;
  }
  inside_.fetch_add(1);  // before the target is read: off() first takes the target away, then looks here
  if (auto* const sink = target_.load()) {
    turn const here{this, innermost};
    innermost = &here;
    sink->on(e);
    innermost = here.outer;
  }
  inside_.fetch_sub(1);
  inside_.notify_all();
}

bool event_switch::wants_calls() const noexcept {
  auto* const sink = target_.load();
  return sink != nullptr && sink->wants_calls();
}

void event_switch::off() noexcept {
  target_.store(nullptr);
  auto const own = inside(this) ? 1u : 0u;
  for (auto now = inside_.load(); now > own; now = inside_.load()) inside_.wait(now);
}

}  // namespace redoubt::detail
