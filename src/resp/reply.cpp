// SPDX-License-Identifier: BSL-1.0
#include <redoubt/resp/reply.hpp>

#include <algorithm>
#include <array>
#include <ostream>

namespace redoubt {
namespace {

struct word {
  std::string_view text;
  server_errc code;
};

constexpr std::array words = {
    word{"ERR", server_errc::err},
    word{"READONLY", server_errc::readonly},
    word{"OOM", server_errc::oom},
    word{"NOREPLICAS", server_errc::noreplicas},
    word{"MISCONF", server_errc::misconf},
    word{"CLUSTERDOWN", server_errc::clusterdown},
    word{"MASTERDOWN", server_errc::masterdown},
    word{"LOADING", server_errc::loading},
    word{"BUSY", server_errc::busy},
    word{"TRYAGAIN", server_errc::tryagain},
    word{"NOAUTH", server_errc::noauth},
    word{"WRONGPASS", server_errc::wrongpass},
    word{"NOPERM", server_errc::noperm},
    word{"MOVED", server_errc::moved},
    word{"ASK", server_errc::ask},
    word{"CROSSSLOT", server_errc::crossslot},
    word{"WRONGTYPE", server_errc::wrongtype},
    word{"NOSCRIPT", server_errc::noscript},
    word{"EXECABORT", server_errc::execabort},
    word{"NOPROTO", server_errc::noproto},
    word{"UNKILLABLE", server_errc::unkillable},
    word{"NOTBUSY", server_errc::notbusy},
    word{"BUSYGROUP", server_errc::busygroup},
    word{"NOGROUP", server_errc::nogroup},
};

server_errc code_of(std::string_view leading) noexcept {
  for (auto const& w : words) {
    if (w.text == leading) return w.code;
  }
  return server_errc::other;
}

std::string_view first_word(std::string_view line) noexcept { return line.substr(0, line.find(' ')); }

// Redis up to 6 wraps what a command inside a script answered: "ERR Error running script (call to f_<sha>):
// @user_script:1: -OOM command not allowed ...". The inner word is the one that counts, if it is one: what a
// script says itself may contain ": -" too, as in "balance: -5".
std::string_view wrapped_word(std::string_view line) noexcept {
  if (!line.starts_with("ERR Error running script")) return {};
  auto const at = line.find(": -");
  if (at == std::string_view::npos) return {};
  auto const word = first_word(line.substr(at + 3));
  bool const is_word = std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return is_word ? word : std::string_view{};
}

}  // namespace

server_error const& reply::as_error() const noexcept {
  static server_error const none{server_errc::none, effect::none, {}};
  return is_error() ? line_ : none;
}

server_error parse_server_error(std::string_view line) {
  server_error out;
  out.text = line;
  out.code = code_of(first_word(line));
  // "reached", or "+ cluster connections reached".
  if (line.starts_with("ERR max number of clients")) out.code = server_errc::max_clients;
  if (auto const inner = wrapped_word(line); !inner.empty()) out.code = code_of(inner);
  // A script that failed half way has executed what stood before the failing line. Redis marks such errors
  // with the script's name; a refusal before the script started carries no such mark.
  bool const inside_script = line.find("user_script:") != std::string_view::npos ||
                             line.find(" script: ") != std::string_view::npos ||
                             line.find("Error running script") != std::string_view::npos;
  if (inside_script) out.effect = effect::unknown;
  return out;
}

effect effect_inside_script(server_error const& error) noexcept {
  // Whole phrases of the server, not words: a script may say BUSY for reasons of its own.
  constexpr std::array refusals = {
      std::string_view("NOSCRIPT No matching script"),
      std::string_view("LOADING Redis is loading"),
      std::string_view("BUSY Redis is busy running"),
      std::string_view("NOAUTH Authentication required"),
  };
  std::string_view const text = error.text;
  bool const not_started =
      std::any_of(refusals.begin(), refusals.end(),
                  [text](std::string_view r) { return text.starts_with(r); }) ||
      (error.code == server_errc::noperm && (text.find(" to run the 'eval") != std::string_view::npos ||
                                             text.find(" to run the 'fcall") != std::string_view::npos));
  return not_started && error.effect == effect::none ? effect::none : effect::unknown;
}

std::ostream& operator<<(std::ostream& out, reply const& r) {
  if (r.is_nil()) return out << "(nil)";
  if (r.is_integer()) return out << "(integer) " << r.as_integer();
  if (r.is_status()) return out << r.as_string();
  if (r.is_string()) return out << '"' << r.as_string() << '"';
  if (r.is_error()) return out << "(error) " << r.as_error().text;
  out << '[';
  bool first = true;
  for (auto const& element : r.as_array()) {
    if (!first) out << ", ";
    first = false;
    out << element;
  }
  return out << ']';
}

}  // namespace redoubt
