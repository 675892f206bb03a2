// SPDX-License-Identifier: BSL-1.0
//
// What was seen, and whether it is what was expected: tables for people, JSON for programs.
#pragma once

#include <string>
#include <vector>

namespace outage {

/// How long a call took under some setting.
struct wait_row {
  std::string key{};  ///< In the JSON report.
  std::string setting{};
  double ms = 0;
  double at_least = 0;
  double at_most = 0;
};

/// What a PING and a write probe say about a server.
struct probe_row {
  std::string state{};
  bool ping = false;
  bool write = false;
  std::string cause{};
  double ms = 0;
};

/// What a route answers.
struct route_row {
  std::string state{};
  std::string route{};
  int status = 0;
  std::string label{};
  double ms = 0;
  double at_most = 0;
};

struct expectation {
  std::string name{};
  bool ok = false;
  std::string detail{};
};

/// Prints each line when it is added, and keeps it. Every line of a table is an expectation too.
class report {
 public:
  void headline(std::string const& text);

  void begin_waits();
  void add(wait_row row);
  void begin_probes();
  void add(probe_row row, probe_row const& expected);
  void begin_routes();
  void add(route_row row, route_row const& expected);
  void begin_expectations();
  void add(expectation e);

  /// Prints the last line. True when everything is as expected.
  bool conclude() const;

  /// Throws when the file cannot be written.
  void write_json(std::string const& file) const;

 private:
  void keep(std::string name, bool ok, std::string detail);

  std::vector<wait_row> waits_;
  std::vector<probe_row> probes_;
  std::vector<route_row> routes_;
  std::vector<expectation> expectations_;
};

/// Milliseconds with a fraction.
template <class Duration>
double milliseconds(Duration d) {
  return static_cast<double>(d.count()) * Duration::period::num * 1e3 / Duration::period::den;
}

}  // namespace outage
