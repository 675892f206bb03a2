// SPDX-License-Identifier: BSL-1.0
//
// Between a sink and those who outlive it.
#include <redoubt/net/event_switch.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

namespace {

using redoubt::event;
using redoubt::event_kind;
using redoubt::detail::event_switch;

struct acting_sink final : redoubt::event_sink {
  explicit acting_sink(std::function<void()> a = [] {}) : act(std::move(a)) {}
  void on(event const&) noexcept override {
    ++told;
    act();
  }
  std::function<void()> act;
  std::atomic<int> told = 0;
};

event const something{.kind = event_kind::lost};

TEST(event_switch, C80_passes_on_until_it_is_switched_off) {
  acting_sink sink;
  event_switch s(&sink);
  s.on(something);
  s.off();
  s.on(something);
  EXPECT_EQ(sink.told, 1);
  event_switch(nullptr).on(something);
}

TEST(event_switch, C80_a_sink_may_switch_it_off_and_speak_again) {
  event_switch* self = nullptr;
  acting_sink sink;
  sink.act = [&] {
    if (sink.told == 1) self->on(something);
    self->off();
    self->on(something);
  };
  event_switch s(&sink);
  self = &s;
  s.on(something);
  EXPECT_EQ(sink.told, 2);
}

TEST(event_switch, C80_the_sink_of_another_may_switch_it_off) {
  event_switch* outer = nullptr;
  acting_sink inner_sink([&] { outer->off(); });
  event_switch inner(&inner_sink);
  acting_sink outer_sink([&] { inner.on(something); });
  event_switch o(&outer_sink);
  outer = &o;
  o.on(something);
  o.on(something);
  EXPECT_EQ(outer_sink.told, 1);
  EXPECT_EQ(inner_sink.told, 1);
}

TEST(event_switch, C80_waits_for_another_thread_that_is_inside) {
  std::atomic<bool> entered = false;
  std::atomic<bool> left = false;
  acting_sink sink([&] {
    entered = true;
    entered.notify_all();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    left = true;
  });
  event_switch s(&sink);
  std::thread other([&] { s.on(something); });
  entered.wait(false);
  s.off();
  EXPECT_TRUE(left);
  other.join();
}

}  // namespace
