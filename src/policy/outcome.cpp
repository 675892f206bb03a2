// SPDX-License-Identifier: BSL-1.0
#include <redoubt/policy/outcome.hpp>

namespace redoubt {

std::string_view to_string(origin from) noexcept {
  switch (from) {
    case origin::cached: return "cached";
    case origin::loaded: return "loaded";
  }
  return "invalid";
}

std::string_view to_string(outcome_problem what) noexcept {
  switch (what) {
    case outcome_problem::none: return "none";
    case outcome_problem::busy: return "busy";
    case outcome_problem::load_failed: return "load_failed";
    case outcome_problem::cache_failed: return "cache_failed";
    case outcome_problem::cancelled: return "cancelled";
  }
  return "invalid";
}

std::ostream& operator<<(std::ostream& out, origin from) { return out << to_string(from); }
std::ostream& operator<<(std::ostream& out, outcome_problem what) { return out << to_string(what); }

std::string outcome_state::text() const {
  std::string out(problem == outcome_problem::none ? to_string(origin) : to_string(problem));
  if (problem != outcome_problem::none) out += ": " + error.message();
  if (degraded) out += ", degraded: " + degraded->message();
  return out;
}

void outcome_state::raise() const {
  if (exception) std::rethrow_exception(exception);
  throw call_error(error);
}

}  // namespace redoubt
