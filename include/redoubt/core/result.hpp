// SPDX-License-Identifier: BSL-1.0
//
// `result<T>`: what every operation completes with. One argument, no exception on an expected failure.
#pragma once

#include <boost/system/result.hpp>

#include <redoubt/core/failure.hpp>

namespace redoubt {

/// A value or a `failure`. `if (r)`, `*r`, `r->`, `r.error()`; `r.value()` throws `call_error`.
template <class T>
using result = boost::system::result<T, failure>;

/// The hook by which Boost.System makes `result::value()` throw `call_error`.
[[noreturn]] inline void throw_exception_from_error(failure const& f, boost::source_location const&) {
  throw call_error(f);
}

}  // namespace redoubt
