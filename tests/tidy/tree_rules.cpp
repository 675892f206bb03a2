#include "tree_rules.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace tidy {
namespace {

struct layer_rule {
  std::set<std::string> ours;  // folders it may include besides itself
  bool asio;
};

// ARCHITECTURE.md, section 2. A line is changed there and here together.
std::map<std::string, layer_rule> const& layers() {
  static std::map<std::string, layer_rule> const table{
      {"core", {{}, false}},
      {"resp", {{"core"}, false}},
      {"fsm", {{"core", "resp"}, false}},
      {"async", {{"core"}, true}},
      {"net", {{"core", "resp", "fsm", "async"}, true}},
      {"client", {{"core", "resp", "fsm", "async", "net"}, true}},
      {"guard", {{"core", "fsm", "async"}, true}},
      {"policy", {{"core", "resp", "fsm", "async", "guard"}, true}},
      {"adapters", {{"core"}, false}},
      {"testing", {{"core", "resp", "fsm", "async", "net"}, true}},
      {"examples",
       {{"core", "resp", "async", "net", "client", "guard", "policy", "adapters", "testing"}, true}},
  };
  return table;
}

struct include_line {
  std::size_t line;
  std::string name;
  bool quoted;
};

std::vector<include_line> includes_of(std::string_view text) {
  static std::regex const pattern{R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re"};
  std::vector<include_line> found;
  std::istringstream in{std::string{text}};
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    std::smatch match;
    if (std::regex_search(line, match, pattern))
      found.push_back({number, match[2].str(), match[1].str() == "\""});
  }
  return found;
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> heads) {
  return std::any_of(heads.begin(), heads.end(),
                     [&](std::string_view head) { return text.starts_with(head); });
}

bool is_public_header(std::string_view path) {
  return path.starts_with("include/") && path.ends_with(".hpp");
}

std::string place(source_file const& file, std::size_t line) {
  return file.path + ":" + std::to_string(line) + ": ";
}

// "src/resp/a.cpp" and "../core/b.hpp" give "src/core/b.hpp".
std::string joined(std::string_view from, std::string const& name) {
  std::vector<std::string> parts;
  std::istringstream in{std::string{from.substr(0, from.rfind('/') + 1)} + name};
  for (std::string part; std::getline(in, part, '/');) {
    if (part == ".." && !parts.empty()) {
      parts.pop_back();
    } else if (part != "." && !part.empty()) {
      parts.push_back(part);
    }
  }
  std::string out;
  for (auto const& part : parts) out += (out.empty() ? "" : "/") + part;
  return out;
}

// The layer an include line reaches, empty when it leads out of the project's own layers.
std::string target_of(source_file const& file, include_line const& include) {
  if (include.name.starts_with("redoubt/")) return layer_of("include/" + include.name);
  if (!include.quoted) return {};
  if (include.name.starts_with("src/")) return layer_of(include.name);
  return layer_of(joined(file.path, include.name));
}

std::size_t line_at(std::string_view text, std::size_t offset) {
  auto const end = text.begin() + static_cast<std::ptrdiff_t>(offset);
  return 1 + static_cast<std::size_t>(std::count(text.begin(), end, '\n'));
}

void find_all(source_file const& file, std::string const& text, std::regex const& pattern,
              std::string const& what, breaches& out) {
  for (std::sregex_iterator at{text.begin(), text.end(), pattern}, end; at != end; ++at) {
    out.push_back(place(file, line_at(text, static_cast<std::size_t>(at->position()))) + what + ": " +
                  at->str());
  }
}

}  // namespace

std::string layer_of(std::string_view path) {
  if (path.starts_with("examples/")) return "examples";
  for (std::string_view root : {"include/redoubt/", "src/"}) {
    if (!path.starts_with(root)) continue;
    path.remove_prefix(root.size());
    auto const slash = path.find('/');
    if (slash == std::string_view::npos) return path == "CMakeLists.txt" ? "" : "client";
    return std::string{path.substr(0, slash)};
  }
  return {};
}

std::string code_only(std::string_view text) {
  std::string out{text};
  enum class inside { code, line_comment, block_comment, string, character } state = inside::code;
  for (std::size_t i = 0; i < out.size(); ++i) {
    char const c = out[i];
    char const next = i + 1 < out.size() ? out[i + 1] : '\0';
    auto const blank = [&](std::size_t at) {
      if (at < out.size() && out[at] != '\n') out[at] = ' ';
    };
    switch (state) {
      case inside::code:
        if (c == '/' && next == '/') {
          state = inside::line_comment, blank(i);
        } else if (c == '/' && next == '*') {
          state = inside::block_comment, blank(i), blank(++i);
        } else if (c == '"' && i != 0 && out[i - 1] == 'R') {
          auto const open = out.find('(', i);
          if (open == std::string::npos) break;
          auto const close = out.find(")" + out.substr(i + 1, open - i - 1) + "\"", open);
          auto const stop = close == std::string::npos ? out.size() : close;
          for (i = open + 1; i < stop; ++i) blank(i);
          if (close != std::string::npos) i = out.find('"', close);
        } else if (c == '"') {
          state = inside::string;
        } else if (c == '\'' && (i == 0 || std::isalnum(static_cast<unsigned char>(out[i - 1])) == 0)) {
          state = inside::character;  // not the digit separator of 1'000
        }
        break;
      case inside::line_comment:
        if (c == '\n') state = inside::code;
        blank(i);
        break;
      case inside::block_comment:
        if (c == '*' && next == '/') {
          state = inside::code, blank(i), blank(++i);
        } else {
          blank(i);
        }
        break;
      case inside::string:
      case inside::character:
        if (c == '\\') {
          blank(i), blank(++i);
        } else if (c == (state == inside::string ? '"' : '\'') || c == '\n') {
          state = inside::code;
        } else {
          blank(i);
        }
        break;
    }
  }
  return out;
}

breaches check_includes(source_file const& file) {
  breaches out;
  std::string const layer = layer_of(file.path);
  auto const rule = layers().find(layer);
  if (layer.empty()) return out;
  if (rule == layers().end()) return {file.path + ": the folder " + layer + " is not in the include table"};

  for (auto const& include : includes_of(file.text)) {
    auto const breach = [&](std::string const& why) {
      out.push_back(place(file, include.line) + layer + " may not include " + include.name + why);
    };
    std::string const target = target_of(file, include);
    if (!target.empty()) {
      if (target != layer && !rule->second.ours.contains(target)) breach(" (layer " + target + ")");
      if (layer == "examples" && joined(file.path, include.name).starts_with("src/")) breach("");
      continue;
    }
    std::string const& name = include.name;
    if (starts_with_any(name, {"boost/asio", "asio/", "asio.hpp"}) && !rule->second.asio) {
      breach(" (Asio)");
    } else if (layer == "core" && name.starts_with("boost/") && !name.starts_with("boost/system/")) {
      breach(" (Boost)");
    }
    if (name.starts_with("hiredis") && !(layer == "resp" && file.path.ends_with(".cpp")))
      breach(" (hiredis)");
    bool const formats = starts_with_any(name, {"fmt/", "spdlog/"});
    bool const optional =
        file.path == "include/redoubt/format.hpp";  // who wants fmt includes it, nobody else pays
    if (formats && is_public_header(file.path) && !optional) breach(" (a public header)");
    if (formats && layer == "fsm") breach("");
    if (name.starts_with("spdlog/") && layer != "adapters" && layer != "examples") breach("");
    if (layer == "fsm" &&
        (name == "thread" || name == "mutex" || name == "shared_mutex" || name == "condition_variable" ||
         name == "future" || name == "semaphore" || name == "latch" || name == "barrier")) {
      breach(" (machines know no thread)");
    }
  }
  return out;
}

breaches check_single_hiredis(std::vector<source_file> const& files) {
  std::set<std::string> users;
  for (auto const& file : files) {
    if (layer_of(file.path).empty()) continue;
    for (auto const& include : includes_of(file.text)) {
      if (include.name.starts_with("hiredis")) users.insert(file.path);
    }
  }
  if (users.size() < 2) return {};
  std::string names;
  for (auto const& user : users) names += " " + user;
  return {"hiredis is included by more than one file:" + names};
}

breaches check_length(source_file const& file) {
  auto const lines = std::count(file.text.begin(), file.text.end(), '\n');
  if (lines <= 400) return {};
  return {file.path + ": " + std::to_string(lines) + " lines, 400 are allowed"};
}

breaches check_banned_calls(source_file const& file) {
  static std::regex const clocks{R"((steady_clock|system_clock|high_resolution_clock|clock_type)::now\b)"
                                 R"(|\b(gettimeofday|clock_gettime|timespec_get)\s*\()"};
  static std::regex const waits{R"(\b(sleep_for|sleep_until|usleep|nanosleep)\b|(^|[^\w.>])sleep\s*\()"};
  static std::regex const threads{R"(\bstd::(thread|jthread|async)\b(?!::id))"};
  static std::regex const distributions{R"(\bstd::\w+_distribution\b)"};
  static std::array<std::string_view, 5> const may_touch_time{
      "include/redoubt/async/clock.hpp", "src/async/clock.cpp", "src/net/resolver.cpp",
      "src/testing/loopback_server.cpp", "src/testing/fault_proxy.cpp"};
  breaches out;
  if (!file.path.starts_with("include/") && !file.path.starts_with("src/")) return out;
  std::string const code = code_only(file.text);
  if (std::find(may_touch_time.begin(), may_touch_time.end(), file.path) == may_touch_time.end()) {
    find_all(file, code, clocks, "reads a clock", out);
    find_all(file, code, waits, "sleeps", out);
    find_all(file, code, threads, "starts a thread", out);
  }
  find_all(file, code, distributions, "differs between standard libraries", out);
  if (layer_of(file.path) == "fsm") {
    static std::regex const callbacks{R"(\bstd::(function|move_only_function)\b)"};
    find_all(file, code, callbacks, "a machine holds no callback", out);
  }
  return out;
}

breaches check_leftovers(source_file const& file) {
  static std::regex const words{R"(\b(TO)"
                                R"(DO|FIX)"
                                R"(ME|XX)"
                                R"(X)\b)"};  // in pieces: this file is checked too
  breaches out;
  find_all(file, file.text, words, "left behind", out);
  return out;
}

breaches check_header_comment(source_file const& file) {
  if (!is_public_header(file.path)) return {};
  std::istringstream in{file.text};
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line == "//" || line == "#pragma once" || line.starts_with("// SPDX-")) continue;
    if (line.starts_with("//") || line.starts_with("/*")) return {};
    break;
  }
  return {file.path + ": says nothing about itself at its top"};
}

breaches check_top_level(std::vector<std::string> const& names) {
  static std::set<std::string> const agreed{"CMakeLists.txt", "include", "src",     "tests",    "examples",
                                            "cmake",          "docs",    "LICENSE", "README.md"};
  breaches out;
  for (auto const& name : names) {
    if (!name.starts_with(".") && !agreed.contains(name))
      out.push_back("unexpected top-level entry: " + name);
  }
  for (auto const& name : agreed) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      out.push_back("missing top-level entry: " + name);
  }
  return out;
}

}  // namespace tidy
