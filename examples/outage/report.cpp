// SPDX-License-Identifier: BSL-1.0
#include "outage/report.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace outage {
namespace {

/// One line, at once: whoever watches sees what is being done, and a closed pipe is noticed.
void print(std::string const& line) {
  fmt::print("{}\n", line);
  if (std::fflush(stdout) != 0) throw std::runtime_error("the output cannot be written");
}

std::string_view mark(bool ok) { return ok ? "ok" : "NOT AS EXPECTED"; }
std::string_view yes(bool b) { return b ? "true" : "false"; }
std::string_view or_dash(std::string const& text) { return text.empty() ? "-" : std::string_view(text); }

}  // namespace

void report::headline(std::string const& text) { print(text); }

void report::begin_waits() {
  print("\nWaits: how long a GET takes while Redis is paused (median)");
  print(fmt::format("  {:<26}  {:>8}  {:>12}", "setting", "wait ms", "allowed ms"));
}

void report::add(wait_row row) {
  bool const ok = row.ms >= row.at_least && row.ms <= row.at_most;
  auto const allowed = fmt::format("{:.0f} .. {:.0f}", row.at_least, row.at_most);
  print(fmt::format("  {:<26}  {:>8.1f}  {:>12}  {}", row.setting, row.ms, allowed, mark(ok)));
  keep("wait: " + row.setting, ok, fmt::format("{:.1f} ms, allowed {} ms", row.ms, allowed));
  waits_.push_back(std::move(row));
}

void report::begin_probes() {
  print("\nProbes: what a PING and a write probe say (at most: the computed worst case + 20 ms)");
  print(fmt::format("  {:<8}  {:<5}  {:<5}  {:<18}  {:>8}  {:>8}", "state", "ping", "write", "cause",
                    "probe ms", "at most"));
}

void report::add(probe_row row, probe_row const& expected) {
  bool const ok = row.ping == expected.ping && row.write == expected.write && row.cause == expected.cause &&
                  row.ms <= expected.ms;
  print(fmt::format("  {:<8}  {:<5}  {:<5}  {:<18}  {:>8.2f}  {:>8.0f}  {}", row.state, yes(row.ping),
                    yes(row.write), or_dash(row.cause), row.ms, expected.ms, mark(ok)));
  auto const text = [](probe_row const& r) {
    return fmt::format("ping {}, write {}, cause {}", yes(r.ping), yes(r.write), or_dash(r.cause));
  };
  auto detail = fmt::format("{}, {:.1f} ms", text(row), row.ms);
  if (!ok) detail += fmt::format("; expected {}, at most {:.0f} ms", text(expected), expected.ms);
  keep("probe: " + row.state, ok, std::move(detail));
  probes_.push_back(std::move(row));
}

void report::begin_routes() {
  print("\nRoutes: what the shop answers (at most: the computed worst case + 20 ms)");
  print(fmt::format("  {:<8}  {:<8}  {:>6}  {:<35}  {:>8}  {:>8}", "state", "route", "status", "label",
                    "wait ms", "at most"));
}

void report::add(route_row row, route_row const& expected) {
  bool const ok = row.status == expected.status && row.label == expected.label && row.ms <= row.at_most;
  print(fmt::format("  {:<8}  {:<8}  {:>6}  {:<35}  {:>8.2f}  {:>8.0f}  {}", row.state, row.route, row.status,
                    row.label, row.ms, row.at_most, mark(ok)));
  auto detail = fmt::format("{} {}, {:.1f} ms", row.status, row.label, row.ms);
  if (!ok)
    detail +=
        fmt::format("; expected {} {}, at most {:.0f} ms", expected.status, expected.label, row.at_most);
  keep(fmt::format("route: {} {}", row.state, row.route), ok, std::move(detail));
  routes_.push_back(std::move(row));
}

void report::begin_expectations() { print("\nExpectations"); }

void report::add(expectation e) {
  print(fmt::format("  {:<53}  {:<2}  {}", e.name, mark(e.ok), e.detail));
  expectations_.push_back(std::move(e));
}

void report::keep(std::string name, bool ok, std::string detail) {
  expectations_.push_back({.name = std::move(name), .ok = ok, .detail = std::move(detail)});
}

bool report::conclude() const {
  auto const failed =
      std::count_if(expectations_.begin(), expectations_.end(), [](auto const& e) { return !e.ok; });
  if (failed == 0) {
    print(fmt::format("\nall {} expectations hold", expectations_.size()));
    return true;
  }
  print(fmt::format("\n{} of {} expectations do not hold:", failed, expectations_.size()));
  for (auto const& e : expectations_) {
    if (!e.ok) print(fmt::format("  {}: {}", e.name, e.detail));
  }
  return false;
}

}  // namespace outage
