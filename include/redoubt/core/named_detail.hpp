// SPDX-License-Identifier: BSL-1.0
//
// The text of a guard's refusals: its name. Made once, so that refusing costs neither an allocation nor the
// counting of references.
#pragma once

#include <memory>
#include <string>

#include <redoubt/core/failure.hpp>

namespace redoubt::detail {

/// A `failure_detail` with this note, which outlives every failure. The same one for the same name, kept to
/// the end of the program and therefore not counted: copying the pointer touches nothing that threads share.
/// After 1024 different names an ordinary, counted one, so that names made at run time cannot fill the
/// memory. Thread-safe.
[[nodiscard]] std::shared_ptr<failure_detail const> named_detail(std::string const& name);

}  // namespace redoubt::detail
