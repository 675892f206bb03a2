// SPDX-License-Identifier: BSL-1.0
//
// Bytes on their way to the connection. A short command lives inside the object, so that making it, handing
// it down and writing it costs no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

namespace redoubt::detail {

/// A number that is 0 once it was moved from, as the bytes that it counts are gone then.
class moving_count {
 public:
  moving_count() noexcept = default;
  moving_count(moving_count const&) noexcept = default;
  moving_count(moving_count&& other) noexcept : value_(std::exchange(other.value_, 0)) {}
  moving_count& operator=(moving_count const&) noexcept = default;
  moving_count& operator=(moving_count&& other) noexcept {
    value_ = std::exchange(other.value_, 0);
    return *this;
  }
  moving_count& operator=(std::uint32_t value) noexcept {
    value_ = value;
    return *this;
  }
  operator std::uint32_t() const noexcept { return value_; }  // NOLINT: it is the number
  std::uint32_t operator++() noexcept { return ++value_; }

 private:
  std::uint32_t value_ = 0;
};

/// A growing array of bytes, the first 80 of them in place. Value type; empty once it was moved from. Not
/// thread-safe.
class wire_bytes {
 public:
  wire_bytes() noexcept {}  // NOLINT: what is in place is deliberately not set
  wire_bytes(wire_bytes const& other) { append(other.view()); }
  wire_bytes(wire_bytes&& other) noexcept { take(other); }
  wire_bytes& operator=(wire_bytes const& other) {
    if (this != &other) *this = wire_bytes(other);
    return *this;
  }
  wire_bytes& operator=(wire_bytes&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  ~wire_bytes() = default;

  [[nodiscard]] std::string_view view() const noexcept { return {data(), size_}; }
  operator std::string_view() const noexcept { return view(); }  // NOLINT: as std::string has it
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Bytes that are held outside the object.
  [[nodiscard]] std::size_t allocated() const noexcept { return heap_ ? capacity_ : 0; }
  [[nodiscard]] char* data() noexcept { return heap_ ? heap_.get() : here_; }
  [[nodiscard]] char const* data() const noexcept { return heap_ ? heap_.get() : here_; }

  /// Makes room for `n` more bytes and says where: what is written there counts after `advance`.
  [[nodiscard]] char* room(std::size_t n) {
    if (capacity_ - size_ < n) grow(n);
    return data() + size_;
  }
  void advance(std::size_t n) noexcept { size_ += n; }
  /// True when the text lies in here, so that making room would take it away.
  [[nodiscard]] bool holds(std::string_view text) const noexcept {
    std::less<> const before;
    return !before(text.data(), data()) && before(text.data(), data() + size_);
  }

  /// `text` must not lie in here.
  wire_bytes& append(std::string_view text) {
    if (!text.empty()) std::memcpy(room(text.size()), text.data(), text.size());
    size_ += text.size();
    return *this;
  }

  /// Makes it empty and gives its memory back.
  void reset() noexcept {
    heap_.reset();
    size_ = 0;
    capacity_ = in_place;
  }

 private:
  static constexpr std::size_t in_place = 80;

  void take(wire_bytes& other) noexcept {
    heap_ = std::move(other.heap_);
    if (!heap_) std::memcpy(here_, other.here_, in_place);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, in_place);
  }

  void grow(std::size_t n) {
    auto const twice = size_ == 0 ? 0 : capacity_ * 2;
    auto const wanted = size_ + n < twice ? twice : size_ + n;
    auto bigger = std::unique_ptr<char[]>(new char[wanted]);  // not make_unique, which would clear it
    std::memcpy(bigger.get(), data(), size_);
    heap_ = std::move(bigger);
    capacity_ = wanted;
  }

  std::unique_ptr<char[]> heap_;
  std::size_t size_ = 0;
  std::size_t capacity_ = in_place;
  char here_[in_place];
};

}  // namespace redoubt::detail
