// SPDX-License-Identifier: BSL-1.0
//
// Hashes and lists.
#include <algorithm>

#include "fake_commands.hpp"

namespace redoubt::testing::detail::commands {
namespace {

std::string* field(hash* fields, std::string_view name) {
  if (fields == nullptr) return nullptr;
  auto const found =
      std::find_if(fields->begin(), fields->end(), [&](auto const& one) { return one.first == name; });
  return found == fields->end() ? nullptr : &found->second;
}

// Adds or changes a field; true when it is new.
bool put(hash& fields, std::string const& name, std::string const& text) {
  if (auto* const old = field(&fields, name)) {
    *old = text;
    return false;
  }
  fields.emplace_back(name, text);
  return true;
}

// The value at the key, created when there is none; null, with the error written, for another type.
template <class T>
T* open(call& c) {
  T* found = nullptr;
  if (!c.typed(c.args[1], found)) return nullptr;
  return found != nullptr ? found : &std::get<T>(c.put(c.args[1], T()).data);
}

void push(call& c, bool front) {
  auto* const items = open<list>(c);
  if (items == nullptr) return;
  for (std::size_t i = 2; i < c.args.size(); ++i) {
    if (front) {
      items->push_front(c.args[i]);
    } else {
      items->push_back(c.args[i]);
    }
  }
  c.modified(c.args[1]);
  c.out.integer(static_cast<std::int64_t>(items->size()));
}

void pop(call& c, bool front) {
  if (c.args.size() > 3) return c.out.error(arity_error(c.spec));
  bool const counted = c.args.size() == 3;
  auto const number = counted ? parse_integer(c.args[2]) : std::optional<std::int64_t>(1);
  if (!number || *number < 0) return c.out.error("ERR value is out of range, must be positive");
  list* items = nullptr;
  if (!c.typed(c.args[1], items)) return;
  if (items == nullptr) return counted ? c.out.nil_array() : c.out.nil();
  auto count = std::min(static_cast<std::size_t>(*number), items->size());
  if (counted) c.out.array(count);
  for (; count > 0; --count) {
    c.out.bulk(front ? items->front() : items->back());
    if (front) {
      items->pop_front();
    } else {
      items->pop_back();
    }
    c.modified(c.args[1]);
  }
  if (items->empty()) c.erase(c.args[1]);
}

// The words 2 and 3 as positions in a list of this size, negative ones counted from the end; nothing on an
// error.
struct span {
  std::int64_t first, last;
};
std::optional<span> read_span(call& c) {
  auto const first = c.integer(2);
  auto const last = first ? c.integer(3) : std::nullopt;
  if (!last) return std::nullopt;
  return span{*first, *last};
}
span clamp(span s, std::int64_t size) {
  return {std::max<std::int64_t>(s.first < 0 ? s.first + size : s.first, 0),
          std::min(s.last < 0 ? s.last + size : s.last, size - 1)};
}

}  // namespace

void hset(call& c) {
  if (c.args.size() % 2 != 0) return c.out.error(arity_error(c.spec));
  auto* const fields = open<hash>(c);
  if (fields == nullptr) return;
  std::int64_t added = 0;
  for (std::size_t i = 2; i < c.args.size(); i += 2) added += put(*fields, c.args[i], c.args[i + 1]) ? 1 : 0;
  c.modified(c.args[1]);
  c.out.integer(added);
}

void hsetnx(call& c) {
  auto* const fields = open<hash>(c);
  if (fields == nullptr) return;
  bool const there = field(fields, c.args[2]) != nullptr;
  if (!there) {
    put(*fields, c.args[2], c.args[3]);
    c.modified(c.args[1]);
  }
  c.out.integer(there ? 0 : 1);
}

void hget(call& c) {
  hash* fields = nullptr;
  if (!c.typed(c.args[1], fields)) return;
  auto const* const text = field(fields, c.args[2]);
  if (text == nullptr) return c.out.nil();
  c.out.bulk(*text);
}

void hmget(call& c) {
  hash* fields = nullptr;
  if (!c.typed(c.args[1], fields)) return;
  c.out.array(c.args.size() - 2);
  for (std::size_t i = 2; i < c.args.size(); ++i) {
    auto const* const text = field(fields, c.args[i]);
    if (text == nullptr) {
      c.out.nil();
    } else {
      c.out.bulk(*text);
    }
  }
}

void hgetall(call& c) {
  hash* fields = nullptr;
  if (!c.typed(c.args[1], fields)) return;
  c.out.array(fields == nullptr ? 0 : fields->size() * 2);
  for (auto const& [name, text] : fields == nullptr ? hash() : *fields) {
    c.out.bulk(name);
    c.out.bulk(text);
  }
}

void hexists(call& c) {
  hash* fields = nullptr;
  if (c.typed(c.args[1], fields)) c.out.integer(field(fields, c.args[2]) != nullptr ? 1 : 0);
}

void hlen(call& c) {
  hash* fields = nullptr;
  if (c.typed(c.args[1], fields))
    c.out.integer(fields == nullptr ? 0 : static_cast<std::int64_t>(fields->size()));
}

void hdel(call& c) {
  hash* fields = nullptr;
  if (!c.typed(c.args[1], fields)) return;
  std::size_t removed = 0;
  for (std::size_t i = 2; fields != nullptr && i < c.args.size(); ++i) {
    removed += std::erase_if(*fields, [&](auto const& one) { return one.first == c.args[i]; });
  }
  if (removed > 0) {
    c.modified(c.args[1]);
    if (fields->empty()) c.erase(c.args[1]);
  }
  c.out.integer(static_cast<std::int64_t>(removed));
}

void hincrby(call& c) {
  auto const step = c.integer(3);
  if (!step) return;
  auto* const fields = open<hash>(c);
  if (fields == nullptr) return;
  auto const* const text = field(fields, c.args[2]);
  auto const old = text == nullptr ? std::optional<std::int64_t>(0) : parse_integer(*text);
  if (!old) return c.out.error("ERR hash value is not an integer");
  std::int64_t sum = 0;
  if (__builtin_add_overflow(*old, *step, &sum)) {
    return c.out.error("ERR increment or decrement would overflow");
  }
  put(*fields, c.args[2], std::to_string(sum));
  c.modified(c.args[1]);
  c.out.integer(sum);
}

void lpush(call& c) { push(c, true); }
void rpush(call& c) { push(c, false); }
void lpop(call& c) { pop(c, true); }
void rpop(call& c) { pop(c, false); }

void llen(call& c) {
  list* items = nullptr;
  if (c.typed(c.args[1], items))
    c.out.integer(items == nullptr ? 0 : static_cast<std::int64_t>(items->size()));
}

void lrange(call& c) {
  auto const words = read_span(c);
  list* items = nullptr;
  if (!words || !c.typed(c.args[1], items)) return;
  auto const [first, last] = clamp(*words, items == nullptr ? 0 : static_cast<std::int64_t>(items->size()));
  c.out.array(first > last ? 0 : static_cast<std::size_t>(last - first + 1));
  for (auto i = first; i <= last; ++i) c.out.bulk((*items)[static_cast<std::size_t>(i)]);
}

void ltrim(call& c) {
  auto const words = read_span(c);
  list* items = nullptr;
  if (!words || !c.typed(c.args[1], items)) return;
  if (items != nullptr) {
    auto const [first, last] = clamp(*words, static_cast<std::int64_t>(items->size()));
    if (first > last) {
      c.erase(c.args[1]);
    } else {
      items->erase(items->begin() + last + 1, items->end());
      items->erase(items->begin(), items->begin() + first);
      c.modified(c.args[1]);
    }
  }
  c.out.ok();
}

}  // namespace redoubt::testing::detail::commands
