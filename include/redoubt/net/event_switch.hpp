// SPDX-License-Identifier: BSL-1.0
//
// Between a client's sink and whatever speaks to it: a connection lives for as long as its executor owes it a
// turn, the application's sink only as long as the client.
#pragma once

#include <atomic>
#include <cstdint>

#include <redoubt/core/events.hpp>

namespace redoubt::detail {

/// Passes events on until it is switched off. Thread-safe, and holds no lock while it passes one on.
class event_switch final : public event_sink {
 public:
  /// `target` may be null.
  explicit event_switch(event_sink* target) noexcept : target_(target) {}

  void on(event const& e) noexcept override;
  [[nodiscard]] bool wants_calls() const noexcept override;

  /// Nothing is passed on any more when this returns: it waits for other threads that are inside the sink.
  /// May be called from within the sink.
  void off() noexcept;

 private:
  std::atomic<event_sink*> target_;
  std::atomic<std::uint32_t> inside_ = 0;
};

}  // namespace redoubt::detail
