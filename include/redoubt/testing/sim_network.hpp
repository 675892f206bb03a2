// SPDX-License-Identifier: BSL-1.0
//
// What can go wrong between a client and a server in a simulated world. Every number is a probability in a
// million or a length of virtual time; all draws come from the world's seed.
#pragma once

#include <cstddef>
#include <cstdint>

#include <redoubt/core/random.hpp>
#include <redoubt/core/time.hpp>

namespace redoubt::testing {

/// Faults of the simulated network; may be changed at any time and holds for what happens afterwards. The
/// defaults are a healthy local network.
struct network_faults {
  /// One-way delay, uniform between the two.
  duration latency_min = std::chrono::microseconds(50);
  duration latency_max = std::chrono::microseconds(150);
  /// Time of a name look-up.
  duration resolve_delay = std::chrono::microseconds(10);
  /// A look-up fails.
  std::uint32_t resolve_fails_ppm = 0;
  /// A look-up is never answered.
  std::uint32_t resolve_hangs_ppm = 0;
  /// A connection attempt is refused although the server accepts.
  std::uint32_t refuse_ppm = 0;
  /// A connection attempt gets no answer at all.
  std::uint32_t connect_hangs_ppm = 0;
  /// A TLS handshake fails: cut off by the peer, or, half as often, for a certificate that is not trusted.
  std::uint32_t secure_fails_ppm = 0;
  /// A TLS handshake is never answered.
  std::uint32_t secure_hangs_ppm = 0;
  /// A new connection will be reset after a random number of bytes, up to `reset_after_max`, in either
  /// direction.
  std::uint32_t reset_ppm = 0;
  std::size_t reset_after_max = 4096;
  /// A new connection will swallow everything after a random number of bytes, without closing.
  std::uint32_t blackhole_ppm = 0;
  /// A delivery is held back by up to `pause_max` (and with it everything behind it).
  std::uint32_t pause_ppm = 0;
  duration pause_max = std::chrono::milliseconds(400);
  /// Bytes arrive in pieces cut anywhere.
  std::uint32_t split_ppm = 0;
  /// A write takes only a part of what it was given.
  std::uint32_t partial_write_ppm = 0;
  /// One byte towards the client is changed. Replies are then wrong by the network's doing; only a protocol
  /// that is broken visibly can be noticed, so use it for robustness, not with value oracles.
  std::uint32_t garble_ppm = 0;
  /// Bytes the network takes before the server reads; beyond it writes wait.
  std::size_t window = 256 * 1024;
};

/// A random choice of faults: each kind is off with probability one half, else of a wild weight (swarm
/// testing).
[[nodiscard]] network_faults draw_faults(random_source& random);

}  // namespace redoubt::testing
