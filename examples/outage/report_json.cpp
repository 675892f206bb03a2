// SPDX-License-Identifier: BSL-1.0
//
// The report for programs. The form is fixed: others read it.
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "outage/report.hpp"

namespace outage {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// `"name": [ ... ]` with an element per line.
template <class Row, class Text>
std::string list(std::string_view name, std::vector<Row> const& rows, Text text) {
  std::string out = fmt::format("  {}: [\n", quoted(name));
  for (std::size_t i = 0; i != rows.size(); ++i) {
    out += fmt::format("    {{{}}}{}\n", text(rows[i]), i + 1 == rows.size() ? "" : ",");
  }
  return out + "  ]";
}

std::string text_of(probe_row const& r) {
  return fmt::format(R"("state": {}, "ping": {}, "write": {}, "cause": {})", quoted(r.state), r.ping, r.write,
                     quoted(r.cause));
}

std::string text_of(route_row const& r) {
  return fmt::format(R"("state": {}, "route": {}, "status": {}, "label": {}, "wait_ms": {:.3f})",
                     quoted(r.state), quoted(r.route), r.status, quoted(r.label), r.ms);
}

std::string text_of(expectation const& e) {
  return fmt::format(R"("name": {}, "ok": {}, "detail": {})", quoted(e.name), e.ok, quoted(e.detail));
}

}  // namespace

void report::write_json(std::string const& file) const {
  auto const text = [](auto const& row) { return text_of(row); };
  std::string out = "{\n  \"waits\": {";
  for (std::size_t i = 0; i != waits_.size(); ++i) {
    out += fmt::format("{}{}: {:.3f}", i == 0 ? "" : ", ", quoted(waits_[i].key), waits_[i].ms);
  }
  out += "},\n" + list("probes", probes_, text) + ",\n" + list("routes", routes_, text) + ",\n" +
         list("expectations", expectations_, text) + "\n}\n";

  std::ofstream stream(file, std::ios::trunc);
  stream << out;
  stream.close();
  if (!stream) throw std::runtime_error("the report cannot be written to " + file);
}

}  // namespace outage
