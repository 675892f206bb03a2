// SPDX-License-Identifier: BSL-1.0
#include <redoubt/policy/admission.hpp>

#include <ostream>
#include <random>

#include <redoubt/core/option_error.hpp>
#include <redoubt/core/random.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void admission_options::validate() const {
  detail::require_option(hold.get() >= 1ms && hold.get() <= std::chrono::days(366), "admission", "hold",
                         hold.get(), "must be 1 ms to 366 days");
  if (!handler_limit) return;
  detail::require_option(*handler_limit > 0ns, "admission", "handler_limit", *handler_limit,
                         "must be more than 0");
  detail::require_option(hold.get() > *handler_limit, "admission", "hold", hold.get(),
                         "must be longer than `handler_limit`, or two handlers run at once");
}

namespace {

template <class Mode>
void print(std::ostream& out, ticket<Mode> const& t) {
  out << t.verdict();
  if (t.error().code != errc::unspecified) out << (t.degraded() ? ", degraded: " : ": ") << t.error();
}

}  // namespace

std::ostream& operator<<(std::ostream& out, ticket<fail_open> const& t) { return print(out, t), out; }
std::ostream& operator<<(std::ostream& out, ticket<fail_closed> const& t) { return print(out, t), out; }

namespace detail {
namespace {

void append_hex(std::string& out, std::uint64_t word) {
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[(word >> shift) & 0xfu];
}

}  // namespace

std::string entry_token(std::optional<std::uint64_t> seed, std::uint64_t number) {
  std::string out;
  out.reserve(32);
  if (seed) {
    random_source random(*seed + number);
    append_hex(out, random());
    append_hex(out, random());
  } else {
    std::random_device device;
    append_hex(out, (std::uint64_t{device()} << 32) | device());
    append_hex(out, (std::uint64_t{device()} << 32) | device());
  }
  return out;
}

void admission_counters::count(ticket<fail_open> const& t) noexcept {
  if (t.error().code != errc::unspecified && t.error().effect == effect::unknown) uncertain.add();
  switch (t.verdict()) {
    case open_verdict::admitted: (t.degraded() ? degraded : admitted).add(); break;
    case open_verdict::refused: refused.add(); break;
    case open_verdict::error: errors.add(); break;
  }
}

void admission_counters::count(ticket<fail_closed> const& t) noexcept {
  if (t.error().code != errc::unspecified && t.error().effect == effect::unknown) uncertain.add();
  switch (t.verdict()) {
    case verdict::admitted: admitted.add(); break;
    case verdict::refused: refused.add(); break;
    case verdict::unavailable: unavailable.add(); break;
  }
}

admission_snapshot admission_counters::read() const noexcept {
  admission_snapshot s;
  s.admitted = admitted.read();
  s.degraded = degraded.read();
  s.refused = refused.read();
  s.unavailable = unavailable.read();
  s.errors = errors.read();
  s.uncertain = uncertain.read();
  s.redis_errors = redis_errors.read();
  s.requests = requests.read();
  return s;
}

}  // namespace detail

}  // namespace redoubt
