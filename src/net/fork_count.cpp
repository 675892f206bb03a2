// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/fork_count.hpp>

#include <pthread.h>

#include <atomic>

namespace redoubt::detail {
namespace {

std::atomic<std::uint32_t> forks = 0;

// Without the handler nothing is noticed, and all else works.
[[maybe_unused]] int const registered =
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

std::uint32_t fork_count() noexcept { return forks.load(std::memory_order_relaxed); }

}  // namespace redoubt::detail
