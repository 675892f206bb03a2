// SPDX-License-Identifier: BSL-1.0
//
// Sorted sets: members and scores.
#include <cmath>
#include <iterator>

#include "fake_commands.hpp"

namespace redoubt::testing::detail::commands {
namespace {

struct zadd_options {
  bool nx = false, xx = false, gt = false, lt = false, changed = false, increment = false;
};

// Reads the options; returns the position of the first score.
std::size_t read_options(arguments const& args, zadd_options& o) {
  std::size_t i = 2;
  for (; i < args.size(); ++i) {
    if (is_word(args[i], "nx")) {
      o.nx = true;
    } else if (is_word(args[i], "xx")) {
      o.xx = true;
    } else if (is_word(args[i], "gt")) {
      o.gt = true;
    } else if (is_word(args[i], "lt")) {
      o.lt = true;
    } else if (is_word(args[i], "ch")) {
      o.changed = true;
    } else if (is_word(args[i], "incr")) {
      o.increment = true;
    } else {
      break;
    }
  }
  return i;
}

struct totals {
  std::int64_t added = 0, updated = 0;
  std::optional<double>
      last{};  // the score of the member that was processed last; none when it was left alone
};

// One pair; false, with the error written, when the sum of two infinities is no number.
bool put(call& c, sorted_set& set, zadd_options const& o, double score, std::string const& member,
         totals& t) {
  auto const old = set.score(member);
  t.last.reset();
  if (!old) {
    if (o.xx) return true;
    set.put(member, score);
    ++t.added;
    t.last = score;
    return true;
  }
  if (o.nx) return true;
  if (o.increment) {
    score += *old;
    if (std::isnan(score)) {
      c.out.error("ERR resulting score is not a number (NaN)");
      return false;
    }
  }
  if ((o.lt && score >= *old) || (o.gt && score <= *old)) return true;
  t.last = score;
  if (score != *old) {
    set.put(member, score);
    ++t.updated;
  }
  return true;
}

void add_pairs(call& c, std::size_t first, zadd_options const& o) {
  std::vector<double> scores;
  for (auto i = first; i < c.args.size(); i += 2) {
    auto const score = parse_double(c.args[i]);
    if (!score) return c.out.error("ERR value is not a valid float");
    scores.push_back(*score);
  }
  auto const& key = c.args[1];
  sorted_set* set = nullptr;
  if (!c.typed(key, set)) return;
  if (set == nullptr && o.xx) return o.increment ? c.out.nil() : c.out.integer(0);
  if (set == nullptr) set = &std::get<sorted_set>(c.put(key, sorted_set()).data);
  totals t;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!put(c, *set, o, scores[i], c.args[first + 2 * i + 1], t)) return;
  }
  if (t.added + t.updated > 0) c.modified(key);
  if (!o.increment) return c.out.integer(o.changed ? t.added + t.updated : t.added);
  if (t.last) {
    c.out.score(*t.last);
  } else {
    c.out.nil();
  }
}

void erase_if_empty(call& c, std::string const& key, sorted_set const& set) {
  if (set.size() == 0) c.erase(key);
}

void rank_of(call& c, bool reverse) {
  sorted_set* set = nullptr;
  if (!c.typed(c.args[1], set)) return;
  auto const score = set == nullptr ? std::nullopt : set->score(c.args[2]);
  if (!score) return c.out.nil();
  auto const& order = set->ordered();
  auto const rank = std::distance(order.begin(), order.find({*score, c.args[2]}));
  c.out.integer(reverse ? static_cast<std::int64_t>(order.size()) - 1 - rank : rank);
}

void pop(call& c, bool highest) {
  if (c.args.size() > 3) return c.syntax_error();
  std::int64_t count = 1;
  if (c.args.size() == 3) {
    auto const number = parse_integer(c.args[2]);
    if (!number || *number < 0) return c.out.error("ERR value is out of range, must be positive");
    count = *number;
  }
  sorted_set* set = nullptr;
  if (!c.typed(c.args[1], set)) return;
  if (set == nullptr) return c.out.array(0);
  count = std::min(count, static_cast<std::int64_t>(set->size()));
  c.out.array(static_cast<std::size_t>(2 * count));
  for (; count > 0; --count) {
    auto const place = highest ? *std::prev(set->ordered().end()) : *set->ordered().begin();
    c.out.bulk(place.second);
    c.out.score(place.first);
    set->erase(place.second);
    c.modified(c.args[1]);
  }
  erase_if_empty(c, c.args[1], *set);
}

}  // namespace

void zadd(call& c) {
  zadd_options o;
  auto const first = read_options(c.args, o);
  auto const words = c.args.size() - first;
  if (words == 0 || words % 2 != 0) return c.syntax_error();
  if (o.nx && o.xx) return c.out.error("ERR XX and NX options at the same time are not compatible");
  if ((o.gt && o.nx) || (o.lt && o.nx) || (o.gt && o.lt)) {
    return c.out.error("ERR GT, LT, and/or NX options at the same time are not compatible");
  }
  if (o.increment && words > 2)
    return c.out.error("ERR INCR option supports a single increment-element pair");
  add_pairs(c, first, o);
}

void zincrby(call& c) { add_pairs(c, 2, {.increment = true}); }

void zrem(call& c) {
  sorted_set* set = nullptr;
  if (!c.typed(c.args[1], set)) return;
  std::int64_t removed = 0;
  for (std::size_t i = 2; set != nullptr && i < c.args.size(); ++i) removed += set->erase(c.args[i]) ? 1 : 0;
  if (removed > 0) {
    c.modified(c.args[1]);
    erase_if_empty(c, c.args[1], *set);
  }
  c.out.integer(removed);
}

void zcard(call& c) {
  sorted_set* set = nullptr;
  if (c.typed(c.args[1], set)) c.out.integer(set == nullptr ? 0 : static_cast<std::int64_t>(set->size()));
}

void zscore(call& c) {
  sorted_set* set = nullptr;
  if (!c.typed(c.args[1], set)) return;
  auto const score = set == nullptr ? std::nullopt : set->score(c.args[2]);
  if (score) {
    c.out.score(*score);
  } else {
    c.out.nil();
  }
}

void zmscore(call& c) {
  sorted_set* set = nullptr;
  if (!c.typed(c.args[1], set)) return;
  c.out.array(c.args.size() - 2);
  for (std::size_t i = 2; i < c.args.size(); ++i) {
    auto const score = set == nullptr ? std::nullopt : set->score(c.args[i]);
    if (score) {
      c.out.score(*score);
    } else {
      c.out.nil();
    }
  }
}

void zrank(call& c) { rank_of(c, false); }
void zrevrank(call& c) { rank_of(c, true); }
void zpopmin(call& c) { pop(c, false); }
void zpopmax(call& c) { pop(c, true); }

}  // namespace redoubt::testing::detail::commands
