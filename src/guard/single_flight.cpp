// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/single_flight.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <redoubt/core/named_detail.hpp>
#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void single_flight_options::validate() const {
  auto const require = [](bool ok, char const* field, auto value, char const* rule) {
    detail::require_option(ok, "single_flight", field, value, rule);
  };
  require(keys >= 1 && keys <= 1'048'576, "keys", std::uint64_t{keys}, "must be 1 to 1048576");
  require(followers >= 1 && followers <= 1'048'576, "followers", std::uint64_t{followers},
          "must be 1 to 1048576");
  require(limit >= 1ms && limit <= 1h, "limit", limit, "must be 1 ms to 1 h");
}

namespace detail {

flight_failures::flight_failures(std::string const& name) : text(named_detail(name)) {}

failure flight_failures::full() const {
  failure f;
  f.code = errc::flight_full;
  f.effect = effect::none;
  f.rejected = true;
  f.detail = text;
  return f;
}

failure flight_failures::too_late() const {
  failure f = full();
  f.code = errc::deadline_exceeded;
  return f;
}

failure flight_failures::expired(bool own, duration elapsed) const {
  failure f;
  f.code = own ? errc::limit_exceeded : errc::deadline_exceeded;
  f.effect = effect::unknown;  // the flight may have done its work
  f.elapsed = elapsed;
  f.detail = text;
  return f;
}

failure flight_failures::cancelled(duration elapsed) const {
  failure f = expired(false, elapsed);
  f.code = errc::cancelled;
  return f;
}

failure flight_failures::closed() const {
  failure f = expired(false, duration::zero());
  f.code = errc::closed;
  return f;
}

failure flight_failures::no_copy() const {
  failure f = expired(false, duration::zero());
  f.code = errc::load_failed;
  return f;
}

failure flight_failures::no_key() const {
  failure f = no_copy();
  f.effect = effect::none;
  return f;
}

layer_description describe_single_flight(single_flight_options const& options, call_figures inside) {
  inside.worst_time = std::min(inside.worst_time, options.limit);
  // A flight is counted until it ends; an operation that a limit inside it has left running is not.
  if (!inside.outlives_answer) inside.concurrency = std::min<std::uint64_t>(inside.concurrency, options.keys);
  inside.outlives_answer = true;
  auto const limit = std::chrono::duration<double, std::milli>(options.limit).count();
  return {"single_flight", options.name,
          fmt::format("{} keys, {} followers, {:g} ms", options.keys, options.followers, limit), inside};
}

}  // namespace detail

}  // namespace redoubt
