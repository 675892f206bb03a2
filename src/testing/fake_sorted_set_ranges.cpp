// SPDX-License-Identifier: BSL-1.0
//
// Sorted sets: ranges by rank and by score.
#include <algorithm>

#include "fake_commands.hpp"

namespace redoubt::testing::detail::commands {
namespace {

using places = std::vector<sorted_set::place>;

struct bound {
  double score;
  bool exclusive;
};

struct score_range {
  bound min, max;

  [[nodiscard]] bool holds(double score) const noexcept {
    return (min.exclusive ? score > min.score : score >= min.score) &&
           (max.exclusive ? score < max.score : score <= max.score);
  }
};

std::optional<bound> read_bound(std::string_view text) {
  bool const exclusive = text.starts_with('(');
  auto const score = parse_double(exclusive ? text.substr(1) : text);
  if (!score) return std::nullopt;
  return bound{*score, exclusive};
}

std::optional<score_range> read_range(call& c, std::string_view min, std::string_view max) {
  auto const low = read_bound(min);
  auto const high = read_bound(max);
  if (low && high) return score_range{*low, *high};
  c.out.error("ERR min or max is not a float");
  return std::nullopt;
}

places by_score(sorted_set const* set, score_range const& range) {
  places out;
  if (set == nullptr) return out;
  std::copy_if(set->ordered().begin(), set->ordered().end(), std::back_inserter(out),
               [&range](auto const& place) { return range.holds(place.first); });
  return out;
}

// The places from `first` to `last`, both counted from the end when negative.
places by_rank(sorted_set const* set, std::int64_t first, std::int64_t last, bool reverse) {
  places out;
  if (set == nullptr) return out;
  out.assign(set->ordered().begin(), set->ordered().end());
  if (reverse) std::reverse(out.begin(), out.end());
  auto const size = static_cast<std::int64_t>(out.size());
  first = std::max<std::int64_t>(first < 0 ? first + size : first, 0);
  last = std::min(last < 0 ? last + size : last, size - 1);
  if (first > last) return {};
  out.erase(out.begin() + last + 1, out.end());
  out.erase(out.begin(), out.begin() + first);
  return out;
}

void limit(places& all, std::int64_t offset, std::int64_t count) {
  if (offset < 0 || offset >= static_cast<std::int64_t>(all.size())) return all.clear();
  all.erase(all.begin(), all.begin() + offset);
  if (count >= 0 && count < static_cast<std::int64_t>(all.size()))
    all.resize(static_cast<std::size_t>(count));
}

void write(call& c, places const& all, bool with_scores) {
  c.out.array(with_scores ? all.size() * 2 : all.size());
  for (auto const& [score, member] : all) {
    c.out.bulk(member);
    if (with_scores) c.out.score(score);
  }
}

void remove(call& c, sorted_set* set, places const& gone) {
  for (auto const& place : gone) set->erase(place.second);
  if (!gone.empty()) c.modified(c.args[1]);
  if (set != nullptr && set->size() == 0) c.erase(c.args[1]);
  c.out.integer(static_cast<std::int64_t>(gone.size()));
}

// ZRANGE and its older relatives. What the name fixes is given; what the words may say is read from
// `options_at`.
struct range_form {
  bool fixed;  // the name decides order and kind: no BYSCORE, BYLEX or REV
  bool by_score;
  bool reverse;
};

void range(call& c, range_form form) {
  bool with_scores = false;
  bool limited = false;
  std::int64_t offset = 0;
  std::int64_t count = -1;
  for (std::size_t i = 4; i < c.args.size(); ++i) {
    auto const& word = c.args[i];
    if (is_word(word, "withscores")) {
      with_scores = true;
    } else if (is_word(word, "limit") && i + 2 < c.args.size()) {
      auto const from = c.integer(i + 1);
      auto const most = from ? c.integer(i + 2) : std::nullopt;
      if (!most) return;
      limited = true;
      offset = *from;
      count = *most;
      i += 2;
    } else if (!form.fixed && is_word(word, "rev")) {
      form.reverse = true;
    } else if (!form.fixed && is_word(word, "byscore")) {
      form.by_score = true;
    } else if (!form.fixed && is_word(word, "bylex")) {
      return c.out.error("ERR the fake server has no BYLEX");
    } else {
      return c.syntax_error();
    }
  }
  if (limited && !form.by_score && count != -1) {
    return c.out.error(
        "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
  }

  sorted_set* set = nullptr;
  if (form.by_score) {
    auto const scores =
        form.reverse ? read_range(c, c.args[3], c.args[2]) : read_range(c, c.args[2], c.args[3]);
    if (!scores || !c.typed(c.args[1], set)) return;
    auto all = by_score(set, *scores);
    if (form.reverse) std::reverse(all.begin(), all.end());
    limit(all, offset, count);
    return write(c, all, with_scores);
  }
  auto const first = c.integer(2);
  auto const last = first ? c.integer(3) : std::nullopt;
  if (last && c.typed(c.args[1], set)) write(c, by_rank(set, *first, *last, form.reverse), with_scores);
}

}  // namespace

void zrange(call& c) { range(c, {.fixed = false, .by_score = false, .reverse = false}); }
void zrevrange(call& c) { range(c, {.fixed = true, .by_score = false, .reverse = true}); }
void zrangebyscore(call& c) { range(c, {.fixed = true, .by_score = true, .reverse = false}); }
void zrevrangebyscore(call& c) { range(c, {.fixed = true, .by_score = true, .reverse = true}); }

void zcount(call& c) {
  auto const scores = read_range(c, c.args[2], c.args[3]);
  sorted_set* set = nullptr;
  if (scores && c.typed(c.args[1], set))
    c.out.integer(static_cast<std::int64_t>(by_score(set, *scores).size()));
}

void zremrangebyscore(call& c) {
  auto const scores = read_range(c, c.args[2], c.args[3]);
  sorted_set* set = nullptr;
  if (scores && c.typed(c.args[1], set)) remove(c, set, by_score(set, *scores));
}

void zremrangebyrank(call& c) {
  auto const first = c.integer(2);
  auto const last = first ? c.integer(3) : std::nullopt;
  sorted_set* set = nullptr;
  if (last && c.typed(c.args[1], set)) remove(c, set, by_rank(set, *first, *last, false));
}

}  // namespace redoubt::testing::detail::commands
