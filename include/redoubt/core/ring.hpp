// SPDX-License-Identifier: BSL-1.0
//
// A FIFO over one power-of-two block that grows when needed and never shrinks by itself: no allocation in
// steady state. The owner is responsible for the bound on its size.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace redoubt {

/// First in, first out. Copyable when `T` is. Not thread-safe. `T` must be default constructible.
template <class T>
class ring {
 public:
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// The element `i` places behind the front; `i` < size().
  [[nodiscard]] T& operator[](std::size_t i) noexcept {
    assert(i < size_);
    return block_[(head_ + i) & (block_.size() - 1)];
  }
  /// @copydoc operator[]
  [[nodiscard]] T const& operator[](std::size_t i) const noexcept {
    assert(i < size_);
    return block_[(head_ + i) & (block_.size() - 1)];
  }
  [[nodiscard]] T& front() noexcept { return (*this)[0]; }
  [[nodiscard]] T const& front() const noexcept { return (*this)[0]; }
  [[nodiscard]] T& back() noexcept { return (*this)[size_ - 1]; }

  void push_back(T value) {
    if (size_ == block_.size()) grow();
    block_[(head_ + size_) & (block_.size() - 1)] = std::move(value);
    ++size_;
  }

  /// Removes and returns the front; the ring must not be empty.
  T pop_front() noexcept {
    assert(size_ > 0);
    T out = std::exchange(block_[head_], T{});
    head_ = (head_ + 1) & (block_.size() - 1);
    --size_;
    return out;
  }

  void clear() noexcept {
    while (!empty()) (void)pop_front();
  }

 private:
  void grow() {
    std::vector<T> bigger(block_.empty() ? 16 : block_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) bigger[i] = std::move((*this)[i]);
    block_ = std::move(bigger);
    head_ = 0;
  }

  std::vector<T> block_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace redoubt
