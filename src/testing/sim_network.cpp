// SPDX-License-Identifier: BSL-1.0
#include <redoubt/testing/sim_network.hpp>

namespace redoubt::testing {

network_faults draw_faults(random_source& random) {
  using namespace std::chrono_literals;
  network_faults out;
  auto const weight = [&random](std::uint32_t most) -> std::uint32_t {
    if (random.chance(1, 2)) return 0;
    // Squared: mostly small, sometimes wild.
    auto const x = random.below(1001);
    return static_cast<std::uint32_t>(x * x * most / 1'000'000);
  };
  out.latency_max = out.latency_min + duration(static_cast<duration::rep>(random.below(5'000'000)));
  out.resolve_fails_ppm = weight(300'000);
  out.refuse_ppm = weight(300'000);
  out.connect_hangs_ppm = weight(300'000);
  out.reset_ppm = weight(800'000);
  out.reset_after_max = random.below(16'384) + 1;
  out.blackhole_ppm = weight(400'000);
  out.pause_ppm = weight(20'000);
  out.pause_max = duration(static_cast<duration::rep>(random.below(600'000'000) + 1));
  out.split_ppm = weight(1'000'000);
  out.partial_write_ppm = weight(1'000'000);
  out.window = random.chance(1, 3) ? random.below(2'000) + 1 : 256 * 1024;
  out.resolve_hangs_ppm = weight(100'000);
  out.secure_fails_ppm = weight(200'000);
  out.secure_hangs_ppm = weight(100'000);
  if (random.chance(1, 4))
    out.resolve_delay = duration(static_cast<duration::rep>(random.below(200'000'000)));
  return out;
}

}  // namespace redoubt::testing
