// SPDX-License-Identifier: BSL-1.0
#include <redoubt/resp/command.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace redoubt {
namespace {

/// ASCII case-insensitive comparison; Redis accepts names in any case.
bool same_word(std::string_view a, std::string_view upper) noexcept {
  return a.size() == upper.size() && std::equal(a.begin(), a.end(), upper.begin(), [](char x, char y) {
           return (x >= 'a' && x <= 'z' ? static_cast<char>(x - 'a' + 'A') : x) == y;
         });
}

// Sorted by nothing in particular: first letter and length are tested before any comparison.
constexpr std::array refused_names = {
    std::string_view("ASKING"),     std::string_view("AUTH"),        std::string_view("BLPOP"),
    std::string_view("BRPOP"),      std::string_view("BLMOVE"),      std::string_view("BLMPOP"),
    std::string_view("BRPOPLPUSH"), std::string_view("BZPOPMIN"),    std::string_view("BZPOPMAX"),
    std::string_view("BZMPOP"),     std::string_view("DISCARD"),     std::string_view("EXEC"),
    std::string_view("HELLO"),      std::string_view("MONITOR"),     std::string_view("MULTI"),
    std::string_view("PSUBSCRIBE"), std::string_view("PSYNC"),       std::string_view("PUNSUBSCRIBE"),
    std::string_view("QUIT"),       std::string_view("READONLY"),    std::string_view("READWRITE"),
    std::string_view("REPLCONF"),   std::string_view("RESET"),       std::string_view("SELECT"),
    std::string_view("SSUBSCRIBE"), std::string_view("SUBSCRIBE"),   std::string_view("SUNSUBSCRIBE"),
    std::string_view("SYNC"),       std::string_view("UNSUBSCRIBE"), std::string_view("UNWATCH"),
    std::string_view("WAIT"),       std::string_view("WAITAOF"),     std::string_view("WATCH"),
};

/// For each first letter the lengths of the refused names, one bit each: says no to nearly every command at
/// once.
constexpr auto refused_lengths = [] {
  std::array<std::uint32_t, 256> bits{};
  for (auto const name : refused_names) {
    auto const first = static_cast<unsigned char>(name.front());
    bits[first] |= std::uint32_t{1} << name.size();
    bits[first + ('a' - 'A')] |= std::uint32_t{1} << name.size();
  }
  return bits;
}();

bool is_refused(std::string_view name) noexcept {
  auto const lengths = refused_lengths[static_cast<unsigned char>(name.front())];
  if (name.size() > 31 || ((lengths >> name.size()) & 1) == 0) return false;
  return std::any_of(refused_names.begin(), refused_names.end(),
                     [&](auto refused) { return same_word(name, refused); });
}

/// A number as text. Floating point: the shortest form that reads back the same.
template <class T>
class digits_of {
 public:
  explicit digits_of(T n) : end_(std::to_chars(text_.data(), text_.data() + text_.size(), n).ptr) {}
  [[nodiscard]] std::string_view view() const noexcept {
    return {text_.data(), static_cast<std::size_t>(end_ - text_.data())};
  }

 private:
  std::array<char, 48> text_;
  char* end_;
};

}  // namespace

void command::append_number(std::int64_t n) { append_text(digits_of(n).view()); }
void command::append_number(std::uint64_t n) { append_text(digits_of(n).view()); }
void command::append_number(float n) { append_text(digits_of(n).view()); }
void command::append_number(double n) { append_text(digits_of(n).view()); }
void command::append_number(long double n) { append_text(digits_of(n).view()); }

void command::append_text(std::string_view text) {
  if (bytes_.size() == 0) {  // moved from: what is added first is the name of a new one
    (void)bytes_.room(header_size);
    bytes_.advance(header_size);
  }
  if (bytes_.holds(text)) return append_text(std::string(text));  // c.add(c[1])
  char digits[20];
  auto const count =
      static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, text.size()).ptr - digits);
  auto const size = 1 + count + 2 + text.size() + 2;
  auto* at = bytes_.room(size);
  *at++ = '$';
  at = std::copy_n(digits, count, at);
  *at++ = '\r';
  *at++ = '\n';
  at += text.copy(at, text.size());
  *at++ = '\r';
  *at++ = '\n';
  bytes_.advance(size);
  ++count_;
}

void command::write_header() noexcept {
  char header[header_size];
  header[0] = '*';
  auto* end = std::to_chars(header + 1, header + header_size - 2, count_).ptr;
  *end++ = '\r';
  *end++ = '\n';
  auto const length = static_cast<std::size_t>(end - header);
  start_ = static_cast<std::uint32_t>(header_size - length);
  std::copy(header, end, bytes_.data() + start_);
}

std::string_view command::name() const noexcept {
  if (bytes_.size() <= header_size) return {};       // moved from
  auto const* at = bytes_.data() + header_size + 1;  // behind the '$'
  std::size_t length = 0;
  while (*at != '\r') length = length * 10 + static_cast<std::size_t>(*at++ - '0');
  return {at + 2, length};
}

std::string_view command::operator[](std::size_t i) const noexcept {
  if (i >= count_) return {};
  std::string_view rest = bytes_.view().substr(header_size);
  for (;;) {
    std::size_t length = 0;
    auto const number_end = std::from_chars(rest.data() + 1, rest.data() + rest.size(), length).ptr;
    rest.remove_prefix(static_cast<std::size_t>(number_end - rest.data()) + 2);
    if (i-- == 0) return rest.substr(0, length);
    rest.remove_prefix(length + 2);
  }
}

pipeline& pipeline::add(command const& c) {
  if (++count_ == 1) label_ = command_name(c.name());
  if (refused_.empty() && cannot_share_connection(c)) refused_ = c.name().empty() ? "(empty)" : c.name();
  runs_script_ = runs_script_ || redoubt::runs_script(c.name());
  bytes_.append(c.wire());
  return *this;
}

bool cannot_share_connection(command const& c) noexcept {
  auto const name = c.name();
  if (name.empty())
    return true;  // Redis treats an empty name as a protocol quirk of its own; nothing useful is lost.
  if (is_refused(name)) return true;
  if (same_word(name, "CLIENT")) {
    auto const sub = c[1];
    return same_word(sub, "REPLY") || same_word(sub, "TRACKING") || same_word(sub, "CACHING") ||
           same_word(sub, "NO-TOUCH") || same_word(sub, "NO-EVICT") || same_word(sub, "SETNAME");
  }
  if (same_word(name, "XREAD") || same_word(name, "XREADGROUP")) {
    // What follows STREAMS are keys, and what follows GROUP a group and a consumer: all may be called
    // anything.
    for (std::size_t i = 1; i < c.size(); ++i) {
      auto const word = c[i];
      if (same_word(word, "STREAMS")) return false;
      if (same_word(word, "BLOCK")) return true;
      if (same_word(word, "GROUP")) i += 2;
      if (same_word(word, "COUNT")) i += 1;
    }
  }
  return false;
}

bool runs_script(std::string_view name) noexcept {
  return same_word(name, "EVAL") || same_word(name, "EVALSHA") || same_word(name, "EVAL_RO") ||
         same_word(name, "EVALSHA_RO") || same_word(name, "FCALL") || same_word(name, "FCALL_RO");
}

}  // namespace redoubt
