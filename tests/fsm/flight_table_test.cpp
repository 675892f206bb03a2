// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/flight_table.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using redoubt::deadline;
using redoubt::ring;
using redoubt::time_point;
using table = redoubt::flight_table<std::string, int>;
using kind = table::entry::kind;

time_point const start{1h};
deadline const never{};

std::vector<int> sorted(ring<int>& list) {
  std::vector<int> out;
  while (!list.empty()) out.push_back(list.pop_front());
  std::sort(out.begin(), out.end());
  return out;
}

template <class Table>
void land(Table& t, typename Table::index flight, ring<int>& answered) {
  if (auto const first = t.finish(flight, answered)) answered.push_back(*first);
}

TEST(flight_table, one_leads_and_the_others_follow) {
  table t(4, 4);
  auto const led = t.join("a", start, never, never, 1);
  EXPECT_EQ(led.what, kind::led);
  EXPECT_EQ(t.join("a", start, never, never, 2).what, kind::joined);
  EXPECT_EQ(t.join("b", start, never, never, 3).what, kind::led);
  ring<int> answered;
  land(t, led.flight, answered);
  EXPECT_EQ(sorted(answered), (std::vector{1, 2}));
  EXPECT_EQ(t.join("a", start, never, never, 4).what, kind::led) << "the key is free again";
  t.check();
}

TEST(flight_table, keys_and_followers_are_bounded) {
  table t(2, 1);
  EXPECT_EQ(t.join("a", start, never, never, 1).what, kind::led);
  EXPECT_EQ(t.join("b", start, never, never, 2).what, kind::led);
  EXPECT_EQ(t.join("c", start, never, never, 3).what, kind::full);
  EXPECT_EQ(t.join("a", start, never, never, 4).what, kind::joined);
  EXPECT_EQ(t.join("b", start, never, never, 5).what, kind::full);
  EXPECT_EQ(t.snapshot().refused, 2u);
  t.check();
}

TEST(flight_table, C98_a_leader_that_leaves_does_not_end_the_flight) {
  table t(4, 4);
  auto const led = t.join("a", start, never, never, 1);
  (void)t.join("a", start, never, never, 2);
  auto const gone = t.leave(led.who);
  EXPECT_TRUE(gone.waited);
  EXPECT_FALSE(gone.abandoned);
  EXPECT_EQ(t.join("a", start, never, never, 3).what, kind::joined) << "never a second load";
  ring<int> answered;
  land(t, led.flight, answered);
  EXPECT_EQ(sorted(answered), (std::vector{2, 3}));
}

TEST(flight_table, C98_each_waits_until_its_own_deadline_and_the_last_one_stops_the_flight) {
  table t(4, 4);
  auto const led = t.join("a", start, deadline(start + 20ms), deadline(start + 1s), 1);
  (void)t.join("a", start, deadline(start + 500ms), deadline(start + 9s), 2);
  EXPECT_EQ(t.next_wakeup(led.flight), start + 20ms);
  ring<int> expired;
  EXPECT_FALSE(t.on_time(led.flight, start + 20ms, expired));
  EXPECT_EQ(sorted(expired), std::vector{1});
  (void)t.join("a", start + 30ms, never, never, 3);
  EXPECT_TRUE(t.on_time(led.flight, start + 1s, expired)) << "the flight's own end holds for all";
  EXPECT_EQ(sorted(expired), (std::vector{2, 3}));
  EXPECT_EQ(t.snapshot().abandoned, 1u);
  EXPECT_EQ(t.join("a", start + 1s, never, never, 4).what, kind::led);
  ring<int> answered;
  land(t, led.flight, answered);
  EXPECT_TRUE(answered.empty());
  EXPECT_EQ(t.snapshot().flights, 1u);
  t.check();
}

TEST(flight_table, leaving_works_once) {
  table t(4, 4);
  auto const led = t.join("a", start, never, never, 1);
  EXPECT_TRUE(t.leave(led.who).abandoned);
  EXPECT_FALSE(t.leave(led.who).waited);
  auto const other = t.join("b", start, never, never, 2);
  EXPECT_FALSE(t.leave(led.who).waited) << "its place belongs to somebody else now";
  EXPECT_TRUE(t.leave(other.who).waited);
}

TEST(flight_table, a_passed_deadline_joins_nothing) {
  table t(4, 4);
  EXPECT_EQ(t.join("a", start, deadline(start), never, 1).what, kind::expired);
  EXPECT_EQ(t.snapshot().flights, 0u);
}

// Every sequence of steps, against a model that knows who waits for which flight.
struct model_flight {
  int key;
  table::index place;
  std::map<int, deadline> waiting;  // by caller
  bool known = true;
};

struct node {
  redoubt::flight_table<int, int> table{2, 2};
  std::vector<model_flight> flights;
  std::map<int, redoubt::flight_table<int, int>::waiter_id> ids;
  time_point now = start;
  int callers = 0;
};

class explorer {
 public:
  std::size_t states = 0;

  void walk(node const& n, int depth) {
    n.table.check();
    ++states;
    if (depth == 0 || ::testing::Test::HasFatalFailure()) return;
    for (int key : {0, 1, 2}) {
      for (auto by : {never, deadline(n.now + 1ms)}) join(n, key, by, depth);
    }
    for (std::size_t f = 0; f < n.flights.size(); ++f) finish(n, f, depth);
    for (auto const& [caller, id] : n.ids) leave(n, caller, depth);
    pass(n, depth);
  }

 private:
  void join(node n, int key, deadline by, int depth) {
    int const caller = ++n.callers;
    std::size_t followers = 0;
    for (auto const& f : n.flights) followers += f.known ? f.waiting.size() - 1 : 0;
    auto const at = std::find_if(n.flights.begin(), n.flights.end(),
                                 [&](auto const& f) { return f.known && f.key == key; });
    auto const got = n.table.join(key, n.now, by, deadline(n.now + 3ms), caller);
    using what = redoubt::flight_table<int, int>::entry::kind;
    if (at != n.flights.end()) {
      ASSERT_EQ(got.what, followers < 2 ? what::joined : what::full);
      if (got.what == what::full) return;
      ASSERT_EQ(got.flight, at->place) << "one flight per key";
      at->waiting[caller] = by;
    } else {
      ASSERT_EQ(got.what, n.flights.size() < 2 ? what::led : what::full);
      if (got.what == what::full) return;
      n.flights.push_back({key, got.flight, {{caller, by}}});
    }
    n.ids[caller] = got.who;
    walk(n, depth - 1);
  }

  void finish(node n, std::size_t f, int depth) {
    ring<int> answered;
    land(n.table, n.flights[f].place, answered);
    auto const got = sorted(answered);
    std::vector<int> expected;
    for (auto const& [caller, by] : n.flights[f].waiting) expected.push_back(caller);
    ASSERT_EQ(got, expected) << "everybody who waits, once";
    for (int caller : got) n.ids.erase(caller);
    n.flights.erase(n.flights.begin() + static_cast<std::ptrdiff_t>(f));
    walk(n, depth - 1);
  }

  void leave(node n, int caller, int depth) {
    auto const id = n.ids.at(caller);
    n.ids.erase(caller);
    auto const at = std::find_if(n.flights.begin(), n.flights.end(),
                                 [&](auto const& f) { return f.waiting.contains(caller); });
    ASSERT_NE(at, n.flights.end());
    at->waiting.erase(caller);
    auto const got = n.table.leave(id);
    ASSERT_TRUE(got.waited);
    ASSERT_EQ(got.who, caller);
    ASSERT_EQ(got.abandoned, at->waiting.empty());
    if (at->waiting.empty()) at->known = false;
    ASSERT_FALSE(n.table.leave(id).waited);
    walk(n, depth - 1);
  }

  void pass(node n, int depth) {
    n.now += 1ms;
    for (auto& f : n.flights) {
      if (!f.known) continue;
      ring<int> expired;
      bool const stop = n.table.on_time(f.place, n.now, expired);
      for (int caller : sorted(expired)) {
        n.ids.erase(caller);
        f.waiting.erase(caller);
      }
      for (auto const& [caller, by] : f.waiting) ASSERT_FALSE(by.passed(n.now));
      ASSERT_EQ(stop, f.waiting.empty());
      if (f.waiting.empty()) f.known = false;
    }
    walk(n, depth - 1);
  }
};

TEST(flight_table, C100_agrees_with_a_model_in_every_sequence_of_six_steps) {
  explorer e;
  e.walk(node{}, 6);
  EXPECT_GT(e.states, 20'000u);
}

/// A key whose copies throw when told to.
struct fragile_key {
  fragile_key() = default;
  explicit fragile_key(int n) : number(n) {}
  fragile_key(fragile_key const& other) : number(other.number) {
    if (throws) throw std::runtime_error("no copy");
  }
  fragile_key& operator=(fragile_key&& other) {
    if (throws_late) throw std::runtime_error("no assignment");
    number = other.number;
    return *this;
  }
  fragile_key(fragile_key&&) noexcept = default;
  friend bool operator==(fragile_key const& a, fragile_key const& b) { return a.number == b.number; }
  int number = 0;
  static inline bool throws = false;
  static inline bool throws_late = false;
};
struct by_number {
  std::size_t operator()(fragile_key const& k) const {
    if (throws) throw std::runtime_error("no hash");
    return static_cast<std::size_t>(k.number);
  }
  static inline bool throws = false;
};

TEST(flight_table, a_key_that_cannot_be_copied_changes_nothing) {
  using fragile_table = redoubt::flight_table<fragile_key, int, by_number>;
  using fragile_kind = fragile_table::entry::kind;
  fragile_table t(2, 2);
  for (auto* const how : {&fragile_key::throws, &fragile_key::throws_late, &by_number::throws}) {
    *how = true;
    for (int i = 0; i < 5; ++i)
      EXPECT_THROW((void)t.join(fragile_key(1), start, never, never, 1), std::runtime_error);
    *how = false;
    t.check();
  }
  EXPECT_EQ(t.snapshot().flights, 0u);
  EXPECT_EQ(t.join(fragile_key(1), start, never, never, 1).what, fragile_kind::led);
  EXPECT_EQ(t.join(fragile_key(2), start, never, never, 2).what, fragile_kind::led);
  t.check();
}

// Whoever waits is answered, whatever has become of the key.
TEST(flight_table, C100_nothing_of_the_key_is_called_when_a_flight_ends) {
  using fragile_table = redoubt::flight_table<fragile_key, int, by_number>;
  fragile_table t(2, 2);
  auto const a = t.join(fragile_key(1), start, never, never, 1);
  (void)t.join(fragile_key(1), start, never, never, 2);
  auto const b = t.join(fragile_key(2), start, deadline(start + 1ms), never, 3);
  by_number::throws = fragile_key::throws = fragile_key::throws_late = true;
  ring<int> others, expired;
  EXPECT_EQ(t.finish(a.flight, others), 1);
  EXPECT_EQ(others.pop_front(), 2);
  EXPECT_TRUE(t.on_time(b.flight, start + 1ms, expired));
  t.check();
  EXPECT_EQ(t.finish(b.flight, others), std::nullopt);
  by_number::throws = fragile_key::throws = fragile_key::throws_late = false;
  t.check();
  EXPECT_EQ(t.snapshot().flights, 0u);
  EXPECT_EQ(t.join(fragile_key(1), start, never, never, 4).what, fragile_table::entry::kind::led);
}

}  // namespace
