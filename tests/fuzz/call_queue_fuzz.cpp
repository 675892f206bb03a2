// SPDX-License-Identifier: BSL-1.0
//
// Long sequences of inputs to a call queue against the model of its promises. Input: two bytes for each step.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "call_queue_model.hpp"

namespace {

using model = test::call_queue_model<64>;

void step(model& m, std::uint8_t what, std::uint8_t how) {
  using namespace std::chrono_literals;
  auto const ms = [](unsigned n) { return std::chrono::milliseconds(n); };
  switch (what % 12) {
    case 0: (void)m.submit(1u + how % 3u, 150ms, false); break;
    case 1: (void)m.submit(1u + how % 2u, ms(1u + how * 2u), true); break;
    case 2:
    case 3: (void)m.take(); break;
    case 4: (void)m.write(1u + how % 8u); break;
    case 5: (void)m.write(m.unreported()); break;
    case 6:
    case 7: (void)m.reply(); break;
    case 8: (void)m.byte(); break;
    case 9: (void)m.pass(ms(how), how % 4u != 0); break;
    case 10: (void)m.cancel(how % 64u); break;
    default:
      switch (how % 4) {
        case 0: (void)m.lost(); break;
        case 1: (void)m.end_waiting(); break;
        default: (void)m.ready(); break;
      }
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  try {
    model m;
    for (std::size_t i = 0; i + 1 < size && i < 2000; i += 2) {
      step(m, data[i], data[i + 1]);
      m.check();
    }
    m.finish();
  } catch (std::logic_error const& broken) {
    std::fprintf(stderr, "broken promise: %s\n", broken.what());
    std::abort();
  }
  return 0;
}
