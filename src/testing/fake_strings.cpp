// SPDX-License-Identifier: BSL-1.0
//
// Strings and counters.
#include <algorithm>
#include <cmath>
#include <limits>

#include "fake_commands.hpp"
#include "fake_expiry.hpp"

namespace redoubt::testing::detail::commands {
namespace {

// Writes the string at `key`, or nil. False when it is of another type.
bool write_string(call& c, std::string_view key) {
  std::string* text = nullptr;
  if (!c.typed(key, text)) return false;
  if (text == nullptr) {
    c.out.nil();
  } else {
    c.out.bulk(*text);
  }
  return true;
}

// Changes the text and keeps the expiry.
void replace_text(call& c, std::string_view key, std::string text) {
  if (auto* const e = c.find(key)) {
    e->data = std::move(text);
    c.modified(key);
  } else {
    c.put(key, std::move(text));
  }
}

void add(call& c, std::int64_t step) {
  std::string* text = nullptr;
  if (!c.typed(c.args[1], text)) return;
  auto const old = text == nullptr ? std::optional<std::int64_t>(0) : parse_integer(*text);
  if (!old) return c.out.error("ERR value is not an integer or out of range");
  std::int64_t sum = 0;
  if (__builtin_add_overflow(*old, step, &sum)) {
    return c.out.error("ERR increment or decrement would overflow");
  }
  replace_text(c, c.args[1], std::to_string(sum));
  c.out.integer(sum);
}

struct set_options {
  bool nx = false, xx = false, get = false, keep_ttl = false, persist = false;
  std::optional<std::size_t> expiry_word{};
  expiry_unit unit{};
};

// The options of SET (from word 3) and GETEX (from word 2). False, with the error written, on a syntax error.
bool read_options(call& c, std::size_t from, bool for_set, set_options& o) {
  for (auto i = from; i < c.args.size(); ++i) {
    std::string_view const word = c.args[i];
    bool const expiry = o.expiry_word.has_value();
    bool const more = i + 1 < c.args.size();
    bool const takes_time =
        is_word(word, "ex") || is_word(word, "px") || is_word(word, "exat") || is_word(word, "pxat");
    if (for_set && is_word(word, "nx") && !o.xx) {
      o.nx = true;
    } else if (for_set && is_word(word, "xx") && !o.nx) {
      o.xx = true;
    } else if (for_set && is_word(word, "get")) {
      o.get = true;
    } else if (for_set && is_word(word, "keepttl") && !expiry) {
      o.keep_ttl = true;
    } else if (!for_set && is_word(word, "persist") && !expiry) {
      o.persist = true;
    } else if (takes_time && more && !expiry && !o.keep_ttl && !o.persist) {
      o.unit = {.seconds = is_word(word.substr(0, 2), "ex"), .absolute = word.size() == 4};
      o.expiry_word = ++i;
    } else {
      c.syntax_error();
      return false;
    }
  }
  return true;
}

void set_with_expiry(call& c, expiry_unit unit) {
  auto const expires = read_expiry(c, 2, unit);
  if (!expires) return;
  c.put(c.args[1], c.args[3]).expires_at = expires;
  c.out.ok();
}

}  // namespace

void get(call& c) { write_string(c, c.args[1]); }

void set(call& c) {
  set_options o;
  if (!read_options(c, 3, true, o)) return;
  std::optional<std::int64_t> expires;
  if (o.expiry_word) {
    expires = read_expiry(c, *o.expiry_word, o.unit);
    if (!expires) return;
  }
  auto const& key = c.args[1];
  if (o.get && !write_string(c, key)) return;
  auto* const old = c.find(key);
  if ((o.nx && old != nullptr) || (o.xx && old == nullptr)) {
    if (!o.get) c.out.nil();
    return;
  }
  if (o.keep_ttl && old != nullptr) expires = old->expires_at;
  c.put(key, c.args[2]).expires_at = expires;
  if (!o.get) c.out.ok();
}

void setnx(call& c) {
  bool const there = c.find(c.args[1]) != nullptr;
  if (!there) c.put(c.args[1], c.args[2]);
  c.out.integer(there ? 0 : 1);
}

void setex(call& c) { set_with_expiry(c, {.seconds = true, .absolute = false}); }
void psetex(call& c) { set_with_expiry(c, {.seconds = false, .absolute = false}); }

void getset(call& c) {
  if (write_string(c, c.args[1])) c.put(c.args[1], c.args[2]);
}

void getdel(call& c) {
  if (write_string(c, c.args[1])) c.erase(c.args[1]);
}

void getex(call& c) {
  set_options o;
  if (!read_options(c, 2, false, o)) return;
  std::optional<std::int64_t> expires;
  if (o.expiry_word) {
    expires = read_expiry(c, *o.expiry_word, o.unit);
    if (!expires) return;
  }
  auto const& key = c.args[1];
  auto* const e = c.find(key);
  if (!write_string(c, key) || e == nullptr) return;
  if (!expires && !o.persist) return;
  e->expires_at = expires;
  c.modified(key);
}

void mget(call& c) {
  c.out.array(c.args.size() - 1);
  for (std::size_t i = 1; i < c.args.size(); ++i) {
    auto const* const e = c.find(c.args[i]);
    auto const* const text = e == nullptr ? nullptr : std::get_if<std::string>(&e->data);
    if (text == nullptr) {
      c.out.nil();  // another type counts as missing here
    } else {
      c.out.bulk(*text);
    }
  }
}

void mset(call& c) {
  if (c.args.size() % 2 == 0) return c.out.error(arity_error(c.spec));
  for (std::size_t i = 1; i < c.args.size(); i += 2) c.put(c.args[i], c.args[i + 1]);
  c.out.ok();
}

void msetnx(call& c) {
  if (c.args.size() % 2 == 0) return c.out.error(arity_error(c.spec));
  for (std::size_t i = 1; i < c.args.size(); i += 2) {
    if (c.find(c.args[i]) != nullptr) return c.out.integer(0);
  }
  for (std::size_t i = 1; i < c.args.size(); i += 2) c.put(c.args[i], c.args[i + 1]);
  c.out.integer(1);
}

void incr(call& c) { add(c, 1); }
void decr(call& c) { add(c, -1); }

void incrby(call& c) {
  if (auto const step = c.integer(2)) add(c, *step);
}

void decrby(call& c) {
  auto const step = c.integer(2);
  if (!step) return;
  if (*step == std::numeric_limits<std::int64_t>::min()) return c.out.error("ERR decrement would overflow");
  add(c, -*step);
}

void incrbyfloat(call& c) {
  std::string* text = nullptr;
  if (!c.typed(c.args[1], text)) return;
  auto const old = text == nullptr ? std::optional<long double>(0) : parse_long_double(*text);
  auto const step = parse_long_double(c.args[2]);
  if (!old || !step) return c.out.error("ERR value is not a valid float");
  auto const sum = *old + *step;
  if (std::isnan(sum) || std::isinf(sum)) return c.out.error("ERR increment would produce NaN or Infinity");
  auto formatted = format_long_double(sum);
  c.out.bulk(formatted);
  replace_text(c, c.args[1], std::move(formatted));
}

void append(call& c) {
  std::string* text = nullptr;
  if (!c.typed(c.args[1], text)) return;
  auto joined = (text == nullptr ? std::string() : *text) + c.args[2];
  c.out.integer(static_cast<std::int64_t>(joined.size()));
  replace_text(c, c.args[1], std::move(joined));
}

void strlen(call& c) {
  std::string* text = nullptr;
  if (c.typed(c.args[1], text)) c.out.integer(text == nullptr ? 0 : static_cast<std::int64_t>(text->size()));
}

void getrange(call& c) {
  auto first = c.integer(2);
  auto last = first ? c.integer(3) : std::nullopt;
  std::string* text = nullptr;
  if (!last || !c.typed(c.args[1], text)) return;
  auto const size = text == nullptr ? 0 : static_cast<std::int64_t>(text->size());
  if (*first < 0 && *last < 0 && *first > *last) return c.out.bulk("");
  if (*first < 0) first = std::max<std::int64_t>(*first + size, 0);
  if (*last < 0) last = std::max<std::int64_t>(*last + size, 0);
  last = std::min(*last, size - 1);
  if (size == 0 || *first > *last) return c.out.bulk("");
  c.out.bulk(std::string_view(*text).substr(static_cast<std::size_t>(*first),
                                            static_cast<std::size_t>(*last - *first + 1)));
}

}  // namespace redoubt::testing::detail::commands
