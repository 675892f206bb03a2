// SPDX-License-Identifier: BSL-1.0
//
// What one call may say about itself. Trivially destructible on purpose: g++ 12 destroys some temporaries
// inside a `co_await` expression twice (docs/decisions/0002), so nothing here may own memory, and nobody can
// derive from it and add what does.
#pragma once

#include <optional>
#include <type_traits>

#include <redoubt/core/time.hpp>

namespace redoubt {

/// Per-call options; all optional.
struct call_options final {
  /// Total time for this call, counted from the moment it is started. Replaces the client's `timeouts` for
  /// this call: waiting, connecting, writing and reading all fit inside it. Zero or negative: the call ends
  /// at once with `deadline_exceeded`, effect none; it never means "no limit". Default: the client's
  /// `timeouts` apply.
  std::optional<duration> budget{};

  /// The request's absolute deadline. Only tightens: the call ends by the earlier of this and its own limit.
  /// Default: none.
  deadline by{};
};

static_assert(std::is_trivially_destructible_v<call_options>,
              "g++ 12 destroys non-trivial aggregates in co_await expressions twice");

}  // namespace redoubt
