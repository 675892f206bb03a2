// SPDX-License-Identifier: BSL-1.0
#include <redoubt/policy/breaker_hint.hpp>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

void breaker_hint_options::validate() const {
  quorum.validate();
  detail::require_option(!key.get().empty(), "breaker_hint", "key", key.get(), "must not be empty");
  detail::require_option(!node.get().empty(), "breaker_hint", "node", node.get(), "must not be empty");
  detail::require_option(interval >= 10ms && interval <= quorum.window / 2, "breaker_hint", "interval",
                         interval, "must be 10 ms to half of quorum.window");
}

namespace detail {

// A sorted set of nodes by when they said it. This many of the youngest are enough to decide.
script const& breaker_hint_script() {
  static script const it(R"(
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local window = tonumber(ARGV[3])
if ARGV[2] == 'down' then
  redis.call('ZADD', KEYS[1], now, ARGV[1])
  redis.call('PEXPIRE', KEYS[1], window)
elseif ARGV[2] == 'up' then
  redis.call('ZREM', KEYS[1], ARGV[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local found = redis.call('ZREVRANGE', KEYS[1], 0, ARGV[4], 'WITHSCORES')
for i = 2, #found, 2 do found[i] = now - found[i] end
return found
)");
  return it;
}

args breaker_hint_arguments(breaker_hint_options const& options, breaker_news news) {
  auto const window = std::chrono::duration_cast<milliseconds>(options.quorum.window).count();
  std::string_view said;
  if (news == breaker_news::down) said = "down";
  if (news == breaker_news::up) said = "up";
  // ZREVRANGE counts from 0 and includes the last: one more than the quorum, because this node may be among
  // them.
  return args(options.node.get(), said, window, options.quorum.nodes);
}

result<std::vector<breaker_report>> read_breaker_reports(reply const& answer) {
  auto const wrong = [] {
    failure f;
    f.code = errc::unexpected_reply;
    f.phase = phase::done;
    f.command = command_name("EVALSHA");
    return f;
  };
  if (!answer.is_array() || answer.as_array().size() % 2 != 0) return wrong();
  auto const& parts = answer.as_array();
  std::vector<breaker_report> out;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    if (!parts[i].is_string() || !parts[i + 1].is_integer()) return wrong();
    auto const age = parts[i + 1].as_integer();
    // Ages that no duration holds are no news, whatever they are.
    constexpr std::int64_t most = std::int64_t{1} << 40;
    if (age > most || age < -most) continue;
    out.push_back({parts[i].as_string(), milliseconds(age)});
  }
  return out;
}

}  // namespace detail

}  // namespace redoubt
