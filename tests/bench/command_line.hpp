// SPDX-License-Identifier: BSL-1.0
//
// What the benchmark programs do alike with their arguments.
#pragma once

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "throughput/machine.hpp"

namespace bench {

/// Options, each with its value.
using command_line = std::vector<std::pair<std::string, std::string>>;

/// A number of the command line, within a range that is safe to run.
inline double number(std::string const& text, std::string const& option, double low, double high) {
  std::size_t used = 0;
  double n = 0;
  try {
    n = std::stod(text, &used);
  } catch (std::exception const&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || !(n >= low && n <= high)) {
    throw std::invalid_argument(fmt::format("{} {} is not in {} .. {}", option, text, low, high));
  }
  return n;
}

inline placement placement_named(std::string_view text) {
  if (text == "two") return placement::two_cpus;
  if (text == "one") return placement::one_cpu;
  if (text == "none") return placement::unpinned;
  throw std::invalid_argument("--pin takes two, one or none");
}

inline std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    auto const comma = std::min(text.find(','), text.size());
    out.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

/// Writes `text` to the file; nothing when `path` is empty.
inline void write_file(std::string const& path, std::string_view text) {
  if (path.empty()) return;
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

/// The main function of a program: gives `run` the options and returns its status; 2 when it throws.
template <class Run>
int program(std::string_view name, std::string_view usage, int argc, char** argv, Run run) {
  std::vector<std::string> const words(argv + 1, argv + argc);
  for (auto const& one : words) {
    if (one == "--help" || one == "-h") {
      fmt::print("{}", usage);
      return 0;
    }
  }
  try {
    command_line options;
    for (std::size_t i = 0; i < words.size(); i += 2) {
      if (i + 1 == words.size())
        throw std::invalid_argument("unknown option, or one without its value: " + words[i]);
      options.emplace_back(words[i], words[i + 1]);
    }
    return run(options);
  } catch (std::exception const& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return 2;
  }
}

}  // namespace bench
