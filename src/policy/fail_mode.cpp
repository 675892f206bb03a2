// SPDX-License-Identifier: BSL-1.0
#include <redoubt/policy/fail_mode.hpp>

#include <ostream>

namespace redoubt {

std::string_view to_string(verdict v) noexcept {
  switch (v) {
    case verdict::admitted: return "admitted";
    case verdict::refused: return "refused";
    case verdict::unavailable: return "unavailable";
  }
  return "invalid";
}

std::string_view to_string(open_verdict v) noexcept {
  switch (v) {
    case open_verdict::admitted: return "admitted";
    case open_verdict::refused: return "refused";
    case open_verdict::error: return "error";
  }
  return "invalid";
}

std::ostream& operator<<(std::ostream& out, verdict v) { return out << to_string(v); }
std::ostream& operator<<(std::ostream& out, open_verdict v) { return out << to_string(v); }

}  // namespace redoubt
