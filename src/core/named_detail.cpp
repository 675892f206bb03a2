// SPDX-License-Identifier: BSL-1.0
#include <redoubt/core/named_detail.hpp>

#include <cstddef>
#include <map>
#include <mutex>

namespace redoubt::detail {
namespace {

constexpr std::size_t most_names = 1024;

struct kept_names {
  std::mutex mutex;
  std::map<std::string, failure_detail> by_name;  // under the mutex; its nodes never move
};

// Never destroyed: failures may be looked at while the program ends.
kept_names& names() {
  static auto* const all = new kept_names;
  return *all;
}

}  // namespace

std::shared_ptr<failure_detail const> named_detail(std::string const& name) {
  failure_detail text;
  text.note = name;
  auto& kept = names();
  std::scoped_lock const lock(kept.mutex);
  auto at = kept.by_name.find(name);
  if (at == kept.by_name.end()) {
    if (kept.by_name.size() >= most_names) return std::make_shared<failure_detail const>(std::move(text));
    at = kept.by_name.emplace(name, std::move(text)).first;
  }
  return {std::shared_ptr<void>(), &at->second};  // no owner, hence nothing to count
}

}  // namespace redoubt::detail
