// SPDX-License-Identifier: BSL-1.0
#include "report.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "allocations.hpp"

namespace bench {
namespace {

/// Whom the others are compared with, and what stands above that column.
struct reference {
  std::string_view peer;
  std::string_view title;
};
constexpr std::array references = {
    reference{"hiredis-blocking", "x block"},  reference{"hiredis-pipelined", "x pipe"},
    reference{"hiredis-async", "x async"},     reference{"redis-benchmark", "x r-bench"},
    reference{"hiredis-8-threads", "x 8 thr"}, reference{"redoubt", "x redoubt"},
};

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
    if (one.what == what && one.peer == peer) return &one;
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
  std::vector<reference> columns;
  for (auto const& one : references) {
    auto const is = [&](line const& l) { return l.peer == one.peer; };
    if (std::any_of(lines.begin(), lines.end(), is)) columns.push_back(one);
  }
  auto out = fmt::format("{:<10}{:>9}  {:<19}{:>10}", "", "in flight", "client", "ops/s");
  for (auto const& one : columns) out += fmt::format("{:>10}", one.title);
  out += fmt::format("{:>11}{:>10}{:>9}{:>9}{:>7}{:>7}\n", "CPU us/op", "allocs/op", "p50 us", "p99 us",
                     "wrong", "failed");
  cell const* before = nullptr;
  for (auto const& one : lines) {
    if (before && *before != one.what) out += '\n';
    before = &one.what;
    auto const allocations = counts_allocations() ? if_any(one.allocations_per_op) : std::nullopt;
    out += fmt::format("{:<10}{:>9}  {:<19}{:>10.0f}", one.what.of->name, one.what.in_flight, one.peer,
                       median(one.ops_per_s));
    for (auto const& other : columns) out += fmt::format("{:>10}", number(ratio(one, other.peer), 2));
    out += fmt::format("{:>11.2f}{:>10}{:>9}{:>9}{:>7}{:>7}\n", median(one.cpu_us_per_op),
                       number(allocations, 2), number(if_any(one.p50_us), 1), number(if_any(one.p99_us), 1),
                       one.wrong, one.failed);
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
    std::string ratios;
    for (auto const& other : references) {
      if (auto const n = ratio(one, other.peer)) {
        ratios += fmt::format("{}\"{}\": {:.4f}", ratios.empty() ? "" : ", ", other.peer, *n);
      }
    }
    out += first ? "\n  " : ",\n  ";
    first = false;
    out += fmt::format(
        "{{\"load\": \"{}\", \"in_flight\": {}, \"client\": \"{}\", \"ops_per_s\": {:.0f}, "
        "\"times\": {{{}}}, \"cpu_us_per_op\": {:.4f}, \"allocations_per_op\": {}, \"p50_us\": {}, "
        "\"p99_us\": {}, \"answers\": {}, \"wrong\": {}, \"failed\": {}, \"rounds_ops_per_s\": {}}}",
        one.what.of->name, one.what.in_flight, one.peer, median(one.ops_per_s), ratios,
        median(one.cpu_us_per_op), value_or_null(allocations), value_or_null(if_any(one.p50_us)),
        value_or_null(if_any(one.p99_us)), one.answers, one.wrong, one.failed, list(one.ops_per_s));
  }
  return out + "\n ]}\n";
}

}  // namespace bench
