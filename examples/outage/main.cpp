// SPDX-License-Identifier: BSL-1.0
//
// What three routes of a shop do when Redis is slow, gone, full or read-only, shown on real servers and
// checked.
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "outage/checks.hpp"

namespace {

constexpr char usage[] = R"(Usage: outage [--json FILE]

Starts Redis servers of its own (a primary, a full one, a replica), pauses and kills them, and shows what the routes
of a shop answer meanwhile: how long calls wait, what health probes say, and what customers see. Each line is checked.
It takes a few seconds and leaves nothing behind.

  --json FILE  also write everything that was seen to FILE
  -h, --help   this text

Status: 0 everything is as expected, 1 something is not, 2 a wrong argument, 3 the demonstration could not be carried
out, 128 + n ended by signal n.
)";

struct arguments {
  bool help = false;
  std::optional<std::string> json;
};

struct wrong_argument : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The file is written at the end; whether it can be is better known at the beginning.
std::string writable(std::string file) {
  namespace fs = std::filesystem;
  auto folder = fs::path(file).parent_path();
  if (folder.empty()) folder = ".";
  if (file.empty()) throw wrong_argument("--json needs the name of a file");
  if (fs::is_directory(file)) throw wrong_argument("--json: " + file + " is a folder");
  bool const there = fs::exists(file);
  if (::access(there ? file.c_str() : folder.c_str(), W_OK) != 0) {
    throw wrong_argument("--json: " + file + " cannot be written: " + std::strerror(errno));
  }
  return file;
}

arguments parse(int argc, char** argv) {
  arguments parsed;
  for (int i = 1; i < argc; ++i) {
    std::string_view const word = argv[i];
    if (word == "-h" || word == "--help") {
      parsed.help = true;
    } else if (word == "--json") {
      if (++i == argc) throw wrong_argument("--json needs the name of a file");
      parsed.json = writable(argv[i]);
    } else if (word.starts_with("--json=")) {
      parsed.json = writable(std::string(word.substr(7)));
    } else {
      throw wrong_argument(fmt::format("unknown argument: {}", word));
    }
  }
  return parsed;
}

int demonstrate(arguments const& wanted) {
  outage::report report;
  report.headline("Starting Redis servers: a primary, a full one, a replica, and one to be killed");
  outage::lab lab;
  outage::measure_waits(lab, report);
  outage::compare_probes(lab, report);
  outage::tour_routes(lab, report);
  outage::check_expectations(lab, report);
  bool const ok = report.conclude();
  if (wanted.json) report.write_json(*wanted.json);
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE,
              SIG_IGN);  // a closed pipe is an error like others: the servers must be ended all the same
  try {
    arguments const wanted = parse(argc, argv);
    if (wanted.help) {
      fmt::print("{}", usage);
      return 0;
    }
    return demonstrate(wanted);
  } catch (wrong_argument const& error) {
    fmt::print(stderr, "outage: {}\nTry --help.\n", error.what());
    return 2;
  } catch (outage::interrupted const& by) {
    fmt::print(stderr, "\noutage: ended by signal {}; the servers and their files are gone\n", by.signal);
    return 128 + by.signal;
  } catch (std::exception const& error) {
    fmt::print(stderr, "outage: {}\n", error.what());
    return 3;
  }
}
