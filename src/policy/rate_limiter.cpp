// SPDX-License-Identifier: BSL-1.0
#include <redoubt/policy/rate_limiter.hpp>

#include <algorithm>
#include <limits>
#include <ostream>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

script const& fixed_window::code() {
  static script const it(R"(
local count = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
local window = tonumber(ARGV[1])
if left < 0 or left > window then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  left = window
end
return {count, left}
)");
  return it;
}

args fixed_window::arguments(duration window) {
  return args(std::chrono::duration_cast<milliseconds>(window).count());
}

result<limiter_answer> fixed_window::read(reply const& answer, std::uint32_t limit, duration window) {
  auto const& parts = answer.as_array();
  if (parts.size() != 2 || !parts[0].is_integer() || !parts[1].is_integer() || parts[0].as_integer() < 1) {
    failure f;
    f.code = errc::unexpected_reply;
    f.phase = phase::done;
    f.command = command_name("EVALSHA");
    return f;
  }
  auto const count = parts[0].as_integer();
  limiter_answer out;
  out.admitted = count <= std::int64_t{limit};
  if (out.admitted) {
    out.remaining = static_cast<std::uint32_t>(std::int64_t{limit} - count);
  } else {
    auto const whole = std::chrono::duration_cast<milliseconds>(window).count();
    out.retry_after = milliseconds(std::clamp<std::int64_t>(parts[1].as_integer(), 1, whole));
  }
  return out;
}

void rate_limiter_options::validate() const {
  detail::require_option(limit.get() >= 1, "rate_limiter", "limit", std::uint64_t{limit.get()},
                         "must be at least 1");
  detail::require_option(window.get() >= 1ms && window.get() <= std::chrono::days(366), "rate_limiter",
                         "window", window.get(), "must be 1 ms to 366 days");
}

namespace {

template <class Mode>
void print(std::ostream& out, decision<Mode> const& d) {
  out << d.verdict();
  if (d.error().code != errc::unspecified) {
    out << (d.degraded() ? ", degraded: " : ": ") << d.error();
  } else if (d.verdict() == Mode::verdict_type::admitted) {
    out << ", " << d.remaining() << " of " << d.limit() << " left";
  } else if (d.retry_after() > 0ns) {
    out << ", try again in " << std::chrono::duration_cast<milliseconds>(d.retry_after()).count() << " ms";
  }
}

}  // namespace

std::ostream& operator<<(std::ostream& out, decision<fail_open> const& d) { return print(out, d), out; }
std::ostream& operator<<(std::ostream& out, decision<fail_closed> const& d) { return print(out, d), out; }

namespace detail {

void rate_limiter_counters::count(decision<fail_open> const& d) noexcept {
  switch (d.verdict()) {
    case open_verdict::admitted: (d.degraded() ? degraded : admitted).add(); break;
    case open_verdict::refused: refused.add(); break;
    case open_verdict::error: errors.add(); break;
  }
}

void rate_limiter_counters::count(decision<fail_closed> const& d) noexcept {
  switch (d.verdict()) {
    case verdict::admitted: admitted.add(); break;
    case verdict::refused: refused.add(); break;
    case verdict::unavailable: unavailable.add(); break;
  }
}

rate_limiter_snapshot rate_limiter_counters::read() const noexcept {
  rate_limiter_snapshot s;
  s.admitted = admitted.read();
  s.degraded = degraded.read();
  s.refused = refused.read();
  s.unavailable = unavailable.read();
  s.errors = errors.read();
  s.redis_errors = redis_errors.read();
  s.requests = requests.read();
  return s;
}

}  // namespace detail

}  // namespace redoubt
