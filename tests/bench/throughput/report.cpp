// SPDX-License-Identifier: BSL-1.0
#include "report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "allocations.hpp"

namespace bench {
namespace {

constexpr std::string_view pipelined = "hiredis-pipelined";
constexpr std::string_view asynchronous = "hiredis-async";

double quantile(std::vector<float>& values, double q) {
  if (values.empty()) return 0;
  auto const at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return static_cast<double>(values[static_cast<std::size_t>(at)]);
}

/// A number for the table, or the sign for "does not apply".
std::string number(std::optional<double> n, int digits) {
  return n ? fmt::format("{:.{}f}", *n, digits) : "-";
}

std::optional<double> if_any(std::vector<double> const& values) {
  if (values.empty()) return std::nullopt;
  return median(values);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

std::string object(facts const& all) {
  std::string out = "{";
  for (auto const& [name, text] : all) {
    out += fmt::format("{}{}: {}", out.size() > 1 ? ", " : "", quoted(name), quoted(text));
  }
  return out + '}';
}

std::string list(std::vector<double> const& values) {
  std::string out = "[";
  for (auto const v : values) out += fmt::format("{}{:.3f}", out.size() > 1 ? ", " : "", v);
  return out + ']';
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  auto const half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string_view to_string(operation op) noexcept { return op == operation::get ? "GET" : "SET"; }

void line::add(sample s) {
  auto const ops = static_cast<double>(std::max<std::uint64_t>(s.answers, 1));
  ops_per_s.push_back(static_cast<double>(s.answers) / s.seconds);
  cpu_us_per_op.push_back(s.cpu_us / ops);
  allocations_per_op.push_back(static_cast<double>(s.allocations) / ops);
  if (!s.waits_us.empty()) {
    p50_us.push_back(quantile(s.waits_us, 0.5));
    p99_us.push_back(quantile(s.waits_us, 0.99));
  }
  answers += s.answers;
  wrong += s.wrong;
  failed += s.failed;
}

line& report::at(cell const& what, std::string_view peer) {
  if (auto const* known = find(what, peer)) return lines[static_cast<std::size_t>(known - lines.data())];
  lines.push_back({what, std::string(peer), {}, {}, {}, {}, {}});
  return lines.back();
}

line const* report::find(cell const& what, std::string_view peer) const {
  for (auto const& one : lines) {
    if (one.what.op == what.op && one.what.in_flight == what.in_flight && one.peer == peer) return &one;
  }
  return nullptr;
}

std::optional<double> report::ratio(line const& one, std::string_view other) const {
  auto const* base = find(one.what, other);
  if (base == nullptr) return std::nullopt;
  std::vector<double> all;
  for (std::size_t i = 0; i < std::min(one.ops_per_s.size(), base->ops_per_s.size()); ++i) {
    if (base->ops_per_s[i] > 0) all.push_back(one.ops_per_s[i] / base->ops_per_s[i]);
  }
  return if_any(all);
}

std::string report::head() const {
  std::string out;
  for (auto const* part : {&machine, &versions, &settings}) {
    for (auto const& [name, text] : *part) out += fmt::format("{:<20}{}\n", name, text);
  }
  return out;
}

std::string report::table() const {
  std::string out = fmt::format("{:<4} {:>9}  {:<19}{:>10}{:>13}{:>9}{:>10}{:>10}{:>9}{:>9}{:>8}{:>8}\n", "",
                                "in flight", "client", "ops/s", "x pipelined", "x async", "CPU us/op",
                                "allocs/op", "p50 us", "p99 us", "wrong", "failed");
  cell const* before = nullptr;
  for (auto const& one : lines) {
    if (before && (before->op != one.what.op || before->in_flight != one.what.in_flight)) out += '\n';
    before = &one.what;
    auto const allocations = counts_allocations() ? if_any(one.allocations_per_op) : std::nullopt;
    out += fmt::format("{:<4} {:>9}  {:<19}{:>10.0f}{:>13}{:>9}{:>10.2f}{:>10}{:>9}{:>9}{:>8}{:>8}\n",
                       to_string(one.what.op), one.what.in_flight, one.peer, median(one.ops_per_s),
                       number(ratio(one, pipelined), 2), number(ratio(one, asynchronous), 2),
                       median(one.cpu_us_per_op), number(allocations, 2), number(if_any(one.p50_us), 1),
                       number(if_any(one.p99_us), 1), one.wrong, one.failed);
  }
  return out;
}

std::string report::json() const {
  auto const value_or_null = [](std::optional<double> n) { return n ? fmt::format("{:.4f}", *n) : "null"; };
  std::string out = fmt::format("{{\"machine\": {},\n \"versions\": {},\n \"settings\": {},\n \"cells\": [",
                                object(machine), object(versions), object(settings));
  bool first = true;
  for (auto const& one : lines) {
    auto const allocations = counts_allocations() ? if_any(one.allocations_per_op) : std::nullopt;
    out += first ? "\n  " : ",\n  ";
    first = false;
    out += fmt::format("{{\"operation\": \"{}\", \"in_flight\": {}, \"client\": \"{}\", \"ops_per_s\": "
                       "{:.0f}, \"x_pipelined\": {}, "
                       "\"x_async\": {}, \"cpu_us_per_op\": {:.4f}, \"allocations_per_op\": {}, \"p50_us\": "
                       "{}, \"p99_us\": {}, "
                       "\"answers\": {}, \"wrong\": {}, \"failed\": {}, \"rounds_ops_per_s\": {}}}",
                       to_string(one.what.op), one.what.in_flight, one.peer, median(one.ops_per_s),
                       value_or_null(ratio(one, pipelined)), value_or_null(ratio(one, asynchronous)),
                       median(one.cpu_us_per_op), value_or_null(allocations),
                       value_or_null(if_any(one.p50_us)), value_or_null(if_any(one.p99_us)), one.answers,
                       one.wrong, one.failed, list(one.ops_per_s));
  }
  return out + "\n ]}\n";
}

}  // namespace bench
