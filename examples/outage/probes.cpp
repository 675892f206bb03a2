// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <redoubt/policy/write_probe.hpp>

#include "outage/checks.hpp"
#include "shop/shop.hpp"

namespace outage {
namespace {

asio::awaitable<probe_row> look(std::string state, redoubt::write_probe<>& probe) {
  probe_row row{.state = std::move(state)};
  row.ping = co_await probe.ping();
  redoubt::probe_report const found = co_await probe.report();
  row.write = found.healthy();
  row.cause = found.cause_text();
  row.ms = milliseconds(found.took);
  co_return row;
}

void compare(lab& where, report& to, condition c, probe_row expected) {
  redoubt::client redis(where.context(), shop::client_options(where.server(c).url()));
  redoubt::write_probe<> probe(redis, {.key = "health:write"});
  where.connect(redis);
  where.begin(c);
  probe_row const row = where.run(look(expected.state, probe));
  where.end(c);
  expected.ms = milliseconds(probe.worst_case() + std::chrono::milliseconds(20));
  to.add(row, expected);
}

}  // namespace

void compare_probes(lab& where, report& to) {
  to.begin_probes();
  compare(where, to, condition::healthy, {.state = "primary", .ping = true, .write = true, .cause = ""});
  compare(where, to, condition::full, {.state = "full", .ping = true, .write = false, .cause = "OOM"});
  compare(where, to, condition::replica,
          {.state = "replica", .ping = true, .write = false, .cause = "READONLY"});
  compare(where, to, condition::paused,
          {.state = "paused", .ping = false, .write = false, .cause = "deadline_exceeded"});
  compare(where, to, condition::killed,
          {.state = "killed", .ping = false, .write = false, .cause = "connection_refused"});
}

}  // namespace outage
