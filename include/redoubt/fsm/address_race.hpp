// SPDX-License-Identifier: BSL-1.0
//
// Which of a name's addresses is tried when, after RFC 8305 ("happy eyeballs"): families alternate, the next
// attempt starts when the one before has failed or has been silent for a while, none is given up for the sake
// of another, and the first connection wins. Within a family the order is random, so that many clients spread
// over the servers behind one name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <redoubt/core/error.hpp>
#include <redoubt/core/random.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt {

/// Times of an `address_race`; RFC 8305, section 5.
struct race_options {
  /// Longest time that a silent attempt holds the next one up. Default 250 ms.
  duration delay_max = std::chrono::milliseconds(250);
  /// Shortest such time. Default 10 ms, the least that the RFC allows.
  duration delay_min = std::chrono::milliseconds(10);
};

/// See the head of this file. Copyable; no clock. Internal tier: may change in any version.
class address_race {
 public:
  /// `families` has one number per address, in the resolver's order; the first one's family begins. All
  /// attempts together end at `by`, so the addresses share the time until then.
  address_race(std::vector<int> const& families, time_point now, time_point by, random_source random,
               race_options options = {});

  /// The address to be tried now, if one is due. To be asked after every input, until it says nothing.
  [[nodiscard]] std::optional<std::size_t> next(time_point now);
  /// The attempt at `address` failed; the next one is due at once.
  void on_failed(std::size_t address, errc why, time_point now);
  /// The attempt at `address` succeeded. True when it is the first: the others are to be given up.
  bool on_connected(std::size_t address);

  /// When to ask `next()` although nothing has happened.
  [[nodiscard]] std::optional<time_point> next_wakeup() const noexcept;
  /// All addresses have failed.
  [[nodiscard]] bool lost() const noexcept { return failed_ == order_.size(); }
  /// Why, of all failures: that somebody refused says more than that a network cannot be reached.
  [[nodiscard]] errc why() const noexcept { return why_; }

  /// For tests: false when an invariant does not hold.
  [[nodiscard]] bool check() const noexcept;

 private:
  enum class state : std::uint8_t { waiting, tried, failed, won };

  race_options options_;
  std::vector<std::size_t> order_;
  std::vector<state> states_;  // by address
  std::size_t started_ = 0;    // of `order_`
  std::size_t failed_ = 0;
  bool won_ = false;
  errc why_ = errc::connect_failed;
  time_point due_{};  // of the next attempt
  time_point by_{};
};

}  // namespace redoubt
