// SPDX-License-Identifier: BSL-1.0
//
// The one file that includes hiredis. Builds against 0.14 and 1.x: the callback table is filled by name and
// the type of an array's element count is deduced from it.
#include <redoubt/resp/reader.hpp>

#include <algorithm>
#include <charconv>
#include <new>
#include <type_traits>

#include <fmt/format.h>
#include <hiredis/read.h>

namespace redoubt {

struct reader::impl {
  explicit impl(reader_options o) : options(o) {
    handle = redisReaderCreateWithFunctions(&functions());
    if (handle == nullptr) throw std::bad_alloc();
    handle->privdata = this;
    handle->maxbuf = 64 * 1024;  // keep a read buffer of this size between replies instead of freeing it
  }
  ~impl() { redisReaderFree(handle); }
  impl(impl const&) = delete;
  impl& operator=(impl const&) = delete;

  void fail(errc code, std::string text) {
    if (error != errc::unspecified) return;
    error = code;
    error_text = std::move(text);
  }

  [[nodiscard]] std::size_t pending() const noexcept { return handle->len - handle->pos; }

  /// A place for the value of this task: the root, or the next element of the array above.
  reply* place(redisReadTask const* task) {
    if (task->parent == nullptr) {
      taken = 0;
      return &root;
    }
    auto& siblings = static_cast<reply*>(task->parent->obj)->elements();
    return &siblings.emplace_back();
  }

  /// Counts what a reply holds, so that many small strings cannot pass the bound that one large one does not.
  bool charge(std::size_t bytes) {
    taken += bytes;
    if (taken <= options.reply_bytes) return true;
    fail(errc::reply_too_large, fmt::format("reply larger than {} bytes", options.reply_bytes));
    return false;
  }

  template <class Count>
  static void* on_array(redisReadTask const* task, Count count) {
    auto& self = *static_cast<impl*>(task->privdata);
    // hiredis refuses negative counts other than -1, and counts above INT_MAX, as a protocol error before
    // this.
    if (static_cast<std::size_t>(count) > self.options.array_elements) {
      self.fail(errc::reply_too_large,
                fmt::format("array of {} elements, the bound is {}", count, self.options.array_elements));
      return nullptr;
    }
    std::size_t depth = 1;
    for (auto const* up = task->parent; up != nullptr; up = up->parent) ++depth;
    if (depth > self.options.depth) {
      self.fail(errc::protocol_error, fmt::format("arrays nested deeper than {}", self.options.depth));
      return nullptr;
    }
    auto* where = self.place(task);
    reply::array elements;
    // The header is a claim, not data: reserve little and let the vector grow with what really arrives.
    elements.reserve(std::min<std::size_t>(static_cast<std::size_t>(count), 64));
    *where = reply(std::move(elements));
    if (!self.charge(16)) return nullptr;
    return where;
  }

  static void* on_string(redisReadTask const* task, char* text, std::size_t size) {
    auto& self = *static_cast<impl*>(task->privdata);
    auto* where = self.place(task);
    if (!self.charge(size + 16)) return nullptr;
    if (task->type == REDIS_REPLY_ERROR) {
      *where = reply(parse_server_error({text, size}));
    } else if (task->type == REDIS_REPLY_STATUS) {
      *where = reply(status_line{std::string(text, size)});
    } else {
      where->set_string({text, size});
    }
    return where;
  }

  static void* on_integer(redisReadTask const* task, long long n) {
    auto& self = *static_cast<impl*>(task->privdata);
    auto* where = self.place(task);
    if (!self.charge(16)) return nullptr;
    *where = reply(std::int64_t{n});
    return where;
  }

  static void* on_nil(redisReadTask const* task) {
    auto& self = *static_cast<impl*>(task->privdata);
    auto* where = self.place(task);
    if (!self.charge(16)) return nullptr;
    *where = reply();
    return where;
  }

  static void on_free(void*) {}  // everything lives in `root`

  static redisReplyObjectFunctions& functions() {
    static redisReplyObjectFunctions table = [] {
      redisReplyObjectFunctions f{};
      f.createString = &on_string;
      f.createArray = &on_array;
      f.createInteger = &on_integer;
      f.createNil = &on_nil;
      f.freeObject = &on_free;
      return f;
    }();
    return table;
  }

  /// At the start of a reply: refuses RESP3 and foreign protocols by their first byte.
  bool check_first_byte() {
    if (pending() == 0) return true;
    std::string_view const rest(handle->buf + handle->pos, pending());
    if (std::string_view("+-:$*").find(rest.front()) != std::string_view::npos) return true;
    fail(errc::protocol_error,
         fmt::format("unexpected first byte 0x{:02x} in \"{}\"",
                     static_cast<unsigned>(static_cast<unsigned char>(rest.front())), escaped(rest, 16)));
    return false;
  }

  // The stack of open values is an array up to hiredis 1.0 and allocated since.
  template <class Handle>
  static redisReadTask const& innermost(Handle const& h) noexcept {
    if constexpr (requires { h.rstack; }) {
      return h.rstack[h.ridx];
    } else {
      return *h.task[h.ridx];
    }
  }

  /// While a reply is incomplete: refuses what it announces but may not have, before its bytes are kept, and
  /// lines that do not end, which hiredis would search again with every piece that arrives.
  void check_incomplete() {
    if (handle->ridx < 0) return;
    auto const type = innermost(*handle).type;
    if (type < 0) return;  // not even its first byte is here
    std::string_view const rest(handle->buf + handle->pos, pending());
    bool const ended = rest.find("\r\n") != std::string_view::npos;
    if (type == REDIS_REPLY_STATUS || type == REDIS_REPLY_ERROR) {
      if (!ended && rest.size() > longest_line) {
        fail(errc::reply_too_large, fmt::format("a line longer than {} bytes", longest_line));
      }
    } else if (!ended) {
      if (rest.size() > 32) fail(errc::protocol_error, fmt::format("no number in \"{}\"", escaped(rest, 16)));
    } else if (type == REDIS_REPLY_STRING) {
      std::size_t announced = 0;
      auto const parsed = std::from_chars(rest.data(), rest.data() + rest.size(), announced);
      if (parsed.ec == std::errc::result_out_of_range) announced = ~std::size_t{0};
      bool const fits = announced <= options.reply_bytes && taken + announced + 16 <= options.reply_bytes;
      if (parsed.ec != std::errc::invalid_argument && !fits) {
        fail(errc::reply_too_large,
             fmt::format("a string of {} bytes, the bound on a reply is {}", announced, options.reply_bytes));
      }
    }
    // Whatever it is, no more is kept than a reply may have.
    if (taken + rest.size() > options.reply_bytes + 1024) {
      fail(errc::reply_too_large, fmt::format("reply larger than {} bytes", options.reply_bytes));
    }
  }

  static constexpr std::size_t longest_line = 1u << 20;

  reader_options options;
  redisReader* handle = nullptr;
  reply root;
  std::size_t taken = 0;
  bool inside = false;  // a reply has begun and is not complete
  errc error = errc::unspecified;
  std::string error_text;
};

reader::reader(reader_options options) : impl_(std::make_unique<impl>(options)) {}
reader::~reader() = default;
reader::reader(reader&&) noexcept = default;
reader& reader::operator=(reader&&) noexcept = default;

void reader::feed(std::string_view bytes) {
  if (impl_->error != errc::unspecified || bytes.empty()) return;
  if (redisReaderFeed(impl_->handle, bytes.data(), bytes.size()) != REDIS_OK) throw std::bad_alloc();
}

std::optional<reply> reader::next() {
  auto& self = *impl_;
  if (self.error != errc::unspecified) return std::nullopt;
  if (!self.inside && !self.check_first_byte()) return std::nullopt;
  self.inside = self.inside || self.pending() > 0;
  void* out = nullptr;
  auto const status = redisReaderGetReply(self.handle, &out);
  if (self.error != errc::unspecified) return std::nullopt;
  if (status != REDIS_OK) {
    self.fail(errc::protocol_error, escaped(self.handle->errstr, 120));
    return std::nullopt;
  }
  if (out == nullptr) {
    self.check_incomplete();
    return std::nullopt;
  }
  self.inside = false;
  self.taken = 0;
  return std::move(self.root);  // what stays behind is overwritten by the next reply
}

errc reader::error() const noexcept { return impl_->error; }
std::string const& reader::error_text() const noexcept { return impl_->error_text; }
bool reader::at_boundary() const noexcept { return !impl_->inside && impl_->pending() == 0; }
std::size_t reader::buffered() const noexcept { return impl_->pending(); }
std::size_t reader::good_piece() const noexcept {
  constexpr std::size_t small = 2048;
  return impl_->pending() < small ? small : std::string_view::npos;
}

std::string escaped(std::string_view text, std::size_t max) {
  std::string out;
  for (char c : text.substr(0, max)) {
    if (c >= ' ' && c < 127 && c != '"' && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

}  // namespace redoubt
