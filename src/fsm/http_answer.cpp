// SPDX-License-Identifier: BSL-1.0
#include <redoubt/fsm/http_answer.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <iomanip>
#include <locale>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace redoubt {

using namespace std::chrono_literals;

namespace {

constexpr std::chrono::seconds longest_pause = 24h * 365;

std::string_view trimmed(std::string_view text) {
  auto const first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

call_outcome outcome_of(http_answer const& answer) noexcept {
  if (answer.status < 100 || answer.status > 599) return call_outcome::malformed_response;
  if (answer.duplicate && answer.status < 500) return call_outcome::duplicate_success;
  switch (answer.status) {
    case 429: return call_outcome::throttled;
    case 500:
    case 502:
    case 503:
    case 504: return call_outcome::server_failure;
    default: return answer.status < 400 ? call_outcome::success : call_outcome::rejected;
  }
}

std::optional<failure> failure_of(http_answer const& answer, std::chrono::sys_seconds wall_clock) {
  auto const what = outcome_of(answer);
  auto f = failure_of(what);
  if (!f) return f;
  if (what == call_outcome::throttled || what == call_outcome::server_failure) {
    auto const now = parse_http_date(answer.date, wall_clock).value_or(wall_clock);
    f->retry_after = parse_retry_after(answer.retry_after, now).value_or(0ns);
  }
  failure_detail text;
  text.note = "HTTP " + std::to_string(answer.status);
  f->detail = std::make_shared<failure_detail const>(std::move(text));
  return f;
}

std::optional<duration> parse_retry_after(std::string_view text, std::chrono::sys_seconds now) {
  text = trimmed(text);
  if (all_digits(text)) {
    std::int64_t seconds = 0;
    auto const read = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (read.ec == std::errc::result_out_of_range || seconds > longest_pause.count()) return longest_pause;
    return std::chrono::seconds(seconds);
  }
  auto const when = parse_http_date(text, now);
  if (!when) return std::nullopt;
  return std::clamp<std::chrono::seconds>(*when - now, 0s, longest_pause);
}

std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text, std::chrono::sys_seconds now) {
  using namespace std::chrono;
  // The length of what follows the name of the weekday is fixed: std::get_time takes a text that ends early.
  struct form {
    char const* pattern;
    std::size_t length;
    bool short_year;
  };
  static constexpr std::array<form, 3> forms{{{"%a, %d %b %Y %H:%M:%S GMT", 26, false},
                                              {"%a, %d-%b-%y %H:%M:%S GMT", 24, true},
                                              {"%a %b %d %H:%M:%S %Y", 21, false}}};
  text = trimmed(text);
  auto const weekday = text.find_first_of(", ");
  if (weekday == std::string_view::npos) return std::nullopt;
  for (auto const& each : forms) {
    if (text.size() - weekday != each.length) continue;
    std::istringstream in{std::string(text)};
    in.imbue(std::locale::classic());  // English names, whatever the application's locale is
    std::tm t{};
    in >> std::get_time(&t, each.pattern);
    if (in.fail() || in.peek() != std::istringstream::traits_type::eof()) continue;
    auto year_number = t.tm_year + 1900;
    if (each.short_year) {
      // "More than 50 years in the future" means the same year of the century before.
      auto const this_year = static_cast<int>(year_month_day(floor<days>(now)).year());
      year_number = this_year - this_year % 100 + (t.tm_year % 100 + 100) % 100;
      if (year_number > this_year + 50) year_number -= 100;
    }
    year_month_day const date{year(year_number), month(static_cast<unsigned>(t.tm_mon + 1)),
                              day(static_cast<unsigned>(t.tm_mday))};
    if (!date.ok()) return std::nullopt;
    return sys_days(date) + hours(t.tm_hour) + minutes(t.tm_min) + seconds(t.tm_sec);
  }
  return std::nullopt;
}

}  // namespace redoubt
