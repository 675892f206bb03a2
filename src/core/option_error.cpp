// SPDX-License-Identifier: BSL-1.0
#include <redoubt/core/option_error.hpp>

#include <chrono>

#include <fmt/format.h>

namespace redoubt {

option_error::option_error(std::string_view owner, std::string_view field, std::string_view value,
                           std::string_view rule)
    : std::invalid_argument(fmt::format("{}: {} is {}, {}", owner, field, value, rule)),
      field_(field) {}

namespace detail {

void require_option(bool ok, std::string_view owner, std::string_view field, std::string_view value,
                    std::string_view rule) {
  if (!ok) throw option_error(owner, field, fmt::format("\"{}\"", value), rule);
}

void require_option(bool ok, std::string_view owner, std::string_view field, duration value,
                    std::string_view rule) {
  if (ok) return;
  auto const ms = std::chrono::duration<double, std::milli>(value).count();
  throw option_error(owner, field, fmt::format("{:g} ms", ms), rule);
}

void require_option(bool ok, std::string_view owner, std::string_view field, double value,
                    std::string_view rule) {
  if (!ok) throw option_error(owner, field, fmt::format("{:g}", value), rule);
}

void require_option(bool ok, std::string_view owner, std::string_view field, std::uint64_t value,
                    std::string_view rule) {
  if (!ok) throw option_error(owner, field, fmt::format("{}", value), rule);
}

}  // namespace detail

}  // namespace redoubt
