// SPDX-License-Identifier: BSL-1.0
//
// What may be handed to an awaited call as a callable.
#pragma once

#include <type_traits>

namespace redoubt {

/// A callable that is safe as an argument inside a `co_await` expression: an lvalue, or an rvalue that is
/// trivially destructible. g++ 12 destroys other closures there twice, which nothing but a sanitizer would
/// show; so give the lambda a name first, and pass that.
template <class Callable>
concept safe_callable = std::is_lvalue_reference_v<Callable> || std::is_trivially_destructible_v<Callable>;

}  // namespace redoubt
