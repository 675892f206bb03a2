// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/event_switch.hpp>

#include <utility>

namespace redoubt::detail {
namespace {

thread_local event_switch const* speaking = nullptr;

}  // namespace

void event_switch::on(event const& e) noexcept {
  if (speaking == this) {  // the sink itself has caused it
    if (auto* const sink = target_.load()) sink->on(e);
    return;
  }
  inside_.fetch_add(1);  // before the target is read: off() first takes the target away, then looks here
  if (auto* const sink = target_.load()) {
    auto const* const outer = std::exchange(speaking, this);
    sink->on(e);
    speaking = outer;
  }
  inside_.fetch_sub(1);
  inside_.notify_all();
}

void event_switch::off() noexcept {
  target_.store(nullptr);
  auto const own = speaking == this ? 1u : 0u;
  for (auto now = inside_.load(); now > own; now = inside_.load()) inside_.wait(now);
}

}  // namespace redoubt::detail
