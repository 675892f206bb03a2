// SPDX-License-Identifier: BSL-1.0
//
// Commands on keys of any type: existence, expiry, iteration.
#include <algorithm>
#include <limits>

#include <redoubt/core/random.hpp>

#include "fake_commands.hpp"
#include "fake_expiry.hpp"

namespace redoubt::testing::detail::commands {
namespace {

struct expire_flags {
  bool nx = false, xx = false, gt = false, lt = false;
};

bool read_flags(call& c, expire_flags& f) {
  for (std::size_t i = 3; i < c.args.size(); ++i) {
    auto const& word = c.args[i];
    if (is_word(word, "nx")) {
      f.nx = true;
    } else if (is_word(word, "xx")) {
      f.xx = true;
    } else if (is_word(word, "gt")) {
      f.gt = true;
    } else if (is_word(word, "lt")) {
      f.lt = true;
    } else {
      c.out.error("ERR Unsupported option " + word);
      return false;
    }
  }
  if (f.nx && (f.xx || f.gt || f.lt)) {
    c.out.error("ERR NX and XX, GT or LT options at the same time are not compatible");
  } else if (f.gt && f.lt) {
    c.out.error("ERR GT and LT options at the same time are not compatible");
  } else {
    return true;
  }
  return false;
}

void set_expiry(call& c, expiry_unit unit) {
  expire_flags f;
  if (!read_flags(c, f)) return;
  auto when = c.integer(2);
  if (!when) return;
  using limits = std::numeric_limits<std::int64_t>;
  if (unit.seconds) {
    if (*when > limits::max() / 1000 || *when < limits::min() / 1000) return invalid_expiry(c);
    when = *when * 1000;
  }
  auto const base = unit.absolute ? 0 : c.ms();
  if (*when > limits::max() - base) return invalid_expiry(c);
  when = *when + base;

  auto const& key = c.args[1];
  auto* const e = c.find(key);
  if (e == nullptr) return c.out.integer(0);
  auto const& old = e->expires_at;  // none counts as never
  bool const refused =
      (f.nx && old) || (f.xx && !old) || (f.gt && (!old || *when <= *old)) || (f.lt && old && *when >= *old);
  if (refused) return c.out.integer(0);
  if (*when <= c.ms() && !c.server.state.replica) {
    c.erase(key);
  } else {
    e->expires_at = when;
    c.modified(key);
  }
  c.out.integer(1);
}

void write_expiry(call& c, expiry_unit unit) {
  auto const* const e = c.find(c.args[1]);
  if (e == nullptr) return c.out.integer(-2);
  if (!e->expires_at) return c.out.integer(-1);
  auto const left = std::max<std::int64_t>(unit.absolute ? *e->expires_at : *e->expires_at - c.ms(), 0);
  c.out.integer(unit.seconds ? (left + 500) / 1000 : left);
}

// FLUSHALL and FLUSHDB accept SYNC or ASYNC.
bool flush_option(call& c) {
  bool const fine = c.args.size() == 1 ||
                    (c.args.size() == 2 && (is_word(c.args[1], "sync") || is_word(c.args[1], "async")));
  if (!fine) c.syntax_error();
  return fine;
}

}  // namespace

void del(call& c) {
  std::int64_t removed = 0;
  for (std::size_t i = 1; i < c.args.size(); ++i) removed += c.erase(c.args[i]) ? 1 : 0;
  c.out.integer(removed);
}

void exists(call& c) {
  c.out.integer(
      std::count_if(c.args.begin() + 1, c.args.end(), [&c](auto const& key) { return c.find(key); }));
}

void type(call& c) {
  auto const* const e = c.find(c.args[1]);
  c.out.status(e == nullptr ? "none" : type_name(e->data));
}

void expire(call& c) { set_expiry(c, {.seconds = true, .absolute = false}); }
void pexpire(call& c) { set_expiry(c, {.seconds = false, .absolute = false}); }
void expireat(call& c) { set_expiry(c, {.seconds = true, .absolute = true}); }
void pexpireat(call& c) { set_expiry(c, {.seconds = false, .absolute = true}); }
void ttl(call& c) { write_expiry(c, {.seconds = true, .absolute = false}); }
void pttl(call& c) { write_expiry(c, {.seconds = false, .absolute = false}); }
void expiretime(call& c) { write_expiry(c, {.seconds = true, .absolute = true}); }
void pexpiretime(call& c) { write_expiry(c, {.seconds = false, .absolute = true}); }

void persist(call& c) {
  auto* const e = c.find(c.args[1]);
  bool const had = e != nullptr && e->expires_at;
  if (had) {
    e->expires_at.reset();
    c.modified(c.args[1]);
  }
  c.out.integer(had ? 1 : 0);
}

void rename(call& c) {
  auto* const from = c.find(c.args[1]);
  if (from == nullptr) return c.out.error("ERR no such key");
  auto moved = *from;
  c.erase(c.args[1]);
  c.put(c.args[2], std::move(moved.data)).expires_at = moved.expires_at;
  c.out.ok();
}

void dbsize(call& c) {
  c.out.integer(static_cast<std::int64_t>(c.server.data.keys(c.client.db, c.ms()).size()));
}

void flushall(call& c) {
  if (!flush_option(c)) return;
  c.server.data.clear();
  c.server.modified_all(-1);
  c.out.ok();
}

void flushdb(call& c) {
  if (!flush_option(c)) return;
  c.server.data.clear(c.client.db);
  c.server.modified_all(c.client.db);
  c.out.ok();
}

void keys(call& c) {
  auto found = c.server.data.keys(c.client.db, c.ms());
  std::erase_if(found, [&c](auto const& key) { return !glob_matches(c.args[1], key); });
  c.out.array(found.size());
  for (auto const& key : found) c.out.bulk(key);
}

void randomkey(call& c) {
  auto const all = c.server.data.keys(c.client.db, c.ms());
  if (all.empty()) return c.out.nil();
  random_source random(c.server.options.seed + c.server.commands);
  c.out.bulk(all[random.below(all.size())]);
}

// The cursor is the number of keys passed; a real server promises no particular order either.
void scan(call& c) {
  auto const cursor = parse_integer(c.args[1]);
  if (!cursor || *cursor < 0) return c.out.error("ERR invalid cursor");
  std::int64_t count = 10;
  std::string_view pattern = "*";
  std::string type;
  for (std::size_t i = 2; i < c.args.size(); i += 2) {
    if (i + 1 == c.args.size()) return c.syntax_error();
    if (is_word(c.args[i], "count")) {
      auto const number = c.integer(i + 1);
      if (!number) return;
      if (*number < 1) return c.syntax_error();
      count = *number;
    } else if (is_word(c.args[i], "match")) {
      pattern = c.args[i + 1];
    } else if (is_word(c.args[i], "type")) {
      type = lower(c.args[i + 1]);
    } else {
      return c.syntax_error();
    }
  }
  auto const all = c.server.data.keys(c.client.db, c.ms());
  auto const size = static_cast<std::int64_t>(all.size());
  auto const from = std::min(*cursor, size);
  auto const to = count > size - from ? size : from + count;
  std::vector<std::string_view> found;
  for (auto i = from; i < to; ++i) {
    std::string_view const key = all[static_cast<std::size_t>(i)];
    if (glob_matches(pattern, key) && (type.empty() || type == type_name(c.find(key)->data)))
      found.push_back(key);
  }
  c.out.array(2);
  c.out.bulk(to == size ? "0" : std::to_string(to));
  c.out.array(found.size());
  for (auto const key : found) c.out.bulk(key);
}

}  // namespace redoubt::testing::detail::commands
