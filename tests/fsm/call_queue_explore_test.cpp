// SPDX-License-Identifier: BSL-1.0
//
// Every sequence of inputs up to a depth, from several starting points, against a plain model.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "call_queue_model.hpp"

namespace {

using test::input;
using world = test::call_queue_model<3>;

class search {
 public:
  std::size_t nodes = 0;

  void run(world const& from, std::vector<input> const& inputs, int depth) {
    for (auto const what : inputs) {
      path_.push_back(what);
      try {
        world next = from;
        if (next.apply(what)) {
          ++nodes;
          next.check();
          if (depth > 1) {
            run(next, inputs, depth - 1);
          } else {
            next.finish();
          }
        }
      } catch (std::logic_error const& broken) {
        if (reported_) throw;
        reported_ = true;
        std::string text;
        for (auto const step : path_)
          text += std::string(" ") + test::input_names[static_cast<std::size_t>(step)];
        throw std::logic_error(std::string(broken.what()) + " after" + text);
      }
      path_.pop_back();
    }
  }

  /// Walks to a starting point.
  world start(std::vector<input> const& steps) {
    world w;
    for (auto const step : steps) {
      path_.push_back(step);
      (void)w.apply(step);
      w.check();
    }
    return w;
  }

 private:
  std::vector<input> path_;
  bool reported_ = false;
};

/// REDOUBT_EXPLORE_DEPTH=1 in the environment adds one step to every sequence, and so on.
std::size_t explore(std::vector<input> const& start, std::vector<input> const& inputs, int depth) {
  if (auto const* more = std::getenv("REDOUBT_EXPLORE_DEPTH")) depth += std::atoi(more);
  search s;
  try {
    s.run(s.start(start), inputs, depth);
  } catch (std::logic_error const& broken) {
    ADD_FAILURE() << broken.what();
  }
  std::printf("%zu sequences\n", s.nodes);
  return s.nodes;
}

std::vector<input> all_inputs() {
  std::vector<input> out;
  for (int i = 0; i <= static_cast<int>(input::last_input); ++i) out.push_back(static_cast<input>(i));
  return out;
}

using enum input;

TEST(call_queue_explore, every_input_from_the_beginning) {
  EXPECT_GT(explore({}, all_inputs(), 6), 100'000u);
}

// From here on fewer kinds of input and more of them, around what goes wrong most easily.

TEST(call_queue_explore, around_a_write) {
  std::vector<input> const inputs{submit_two_replies, take,          write_one, write_rest, reply, tick,
                                  cancel_first,       cancel_second, lost,      ready};
  EXPECT_GT(explore({ready, submit, submit, take}, inputs, 7), 100'000u);
}

TEST(call_queue_explore, around_a_tombstone) {
  std::vector<input> const inputs{submit, take,          write_rest,   reply, byte,
                                  tick,   cancel_second, cancel_third, lost};
  EXPECT_GT(explore({ready, submit_two_replies, submit, take, write_rest, write_rest, reply, cancel_first},
                    inputs, 7),
            50'000u);
}

TEST(call_queue_explore, around_the_gate) {
  std::vector<input> const inputs{
      submit,   submit_short_budget, submit_long_budget, take, write_rest, reply, byte, long_tick, tick,
      late_tick};
  EXPECT_GT(explore({ready, submit, take, write_rest}, inputs, 6), 50'000u);
}

}  // namespace
