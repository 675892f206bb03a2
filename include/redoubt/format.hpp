// SPDX-License-Identifier: BSL-1.0
//
// fmt support for every type of redoubt that streams: enums, failures, replies, and the answers of the
// policies. The only public header that includes fmt; include it where you format, nothing else needs it.
// Link fmt::fmt yourself.
#pragma once

#include <ostream>
#include <type_traits>

#include <fmt/ostream.h>

#include <redoubt/core/failure.hpp>

namespace redoubt {

/// Found by argument-dependent lookup for the types of this namespace only; never defined.
template <class T>
std::true_type belongs_to_redoubt(T const&);

}  // namespace redoubt

// Outside of namespace redoubt, so that only argument-dependent lookup can find the name above.
namespace redoubt_format {

template <class T>
concept prints = (std::is_class_v<T> || std::is_enum_v<T>)&&requires(std::ostream& out, T const& value) {
  belongs_to_redoubt(value);
  out << value;
};

}  // namespace redoubt_format

/// `fmt::format("{}", value)` prints what `stream << value` prints.
template <redoubt_format::prints T>
struct fmt::formatter<T> : fmt::ostream_formatter {};
