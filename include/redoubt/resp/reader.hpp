// SPDX-License-Identifier: BSL-1.0
//
// Bytes in, replies out. hiredis parses; this class adds the bounds that hiredis does not have and builds our
// own values without an intermediate tree. One reader per connection; after an error it is dead and must be
// dropped.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <redoubt/core/error.hpp>
#include <redoubt/resp/reply.hpp>

namespace redoubt {

/// Bounds on what a peer may make us hold.
struct reader_options {
  /// Largest reply in bytes, strings and headers together. Default 64 MiB. Range 64 .. 512 MiB.
  std::size_t reply_bytes = 64u << 20;
  /// Largest number of elements of one array. Default 1 Mi. Range 1 .. 2^31-1.
  std::size_t array_elements = 1u << 20;
  /// Deepest nesting of arrays. Default 7, the most that hiredis 0.14 can read. Range 1 .. 7.
  std::size_t depth = 7;
};

/// An incremental RESP2 parser with bounds. Not thread-safe.
class reader {
 public:
  explicit reader(reader_options options = {});
  ~reader();
  reader(reader&&) noexcept;
  reader& operator=(reader&&) noexcept;

  /// Adds bytes as they came from the connection, cut anywhere. Any number is right; `good_piece()` is
  /// fastest.
  void feed(std::string_view bytes);

  /// How much to feed between two series of `next()`: hiredis moves what it has not read yet to the front of
  /// its buffer after every kilobyte, so what is fed in advance is moved again and again. A long string is
  /// taken in one piece.
  [[nodiscard]] std::size_t good_piece() const noexcept;

  /// The next whole reply; empty when more bytes are needed or the reader has failed (see `error()`).
  [[nodiscard]] std::optional<reply> next();

  /// `protocol_error` or `reply_too_large` once the stream cannot be followed any more; `unspecified` while
  /// it can.
  [[nodiscard]] errc error() const noexcept;

  /// What was wrong, for a message: at most 16 bytes of the input, escaped. Empty while there is no error.
  [[nodiscard]] std::string const& error_text() const noexcept;

  /// True when every byte that was fed belongs to a reply already taken.
  [[nodiscard]] bool at_boundary() const noexcept;

  /// The number of bytes fed that belong to replies not yet taken.
  [[nodiscard]] std::size_t buffered() const noexcept;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// `text` with every byte that is not printable ASCII written as \xNN, cut to `max` bytes of input.
[[nodiscard]] std::string escaped(std::string_view text, std::size_t max);

}  // namespace redoubt
