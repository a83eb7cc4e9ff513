#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace lockstep {

/// A growable array of trivially copyable values that grows with realloc: for large arrays the C library moves pages
/// instead of copying them, so growth never holds two copies in memory, and capacity that was not written is not
/// resident. Cost: push_back amortised O(1). Not thread-safe. Move-only.
template <typename T>
class Column {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Column() = default;
  Column(Column&& other) noexcept { swap(other); }
  Column& operator=(Column&& other) noexcept {
    Column moved(std::move(other));
    swap(moved);
    return *this;
  }
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;
  ~Column() { std::free(data_); }

  void push_back(T value) {
    if (size_ == capacity_) [[unlikely]]
      Grow(size_ + 1);
    data_[size_++] = value;
  }
  void reserve(size_t count) {
    if (count > capacity_) Reallocate(count);
  }
  /// New elements are value-initialised.
  void resize(size_t count) {
    if (count > capacity_) Reallocate(count);
    for (size_t i = size_; i < count; ++i) data_[i] = T{};
    size_ = count;
  }
  /// New elements are indeterminate: for writers that fill them at once through data().
  void resize_uninitialized(size_t count) {
    if (count > capacity_) Reallocate(count);
    size_ = count;
  }
  void clear() { size_ = 0; }
  void shrink_to_fit() {
    if (size_ == 0) {
      std::free(data_);
      data_ = nullptr;
      capacity_ = 0;
    } else if (size_ < capacity_) {
      Reallocate(size_);
    }
  }

  size_t size() const { return size_; }
  size_t capacity_bytes() const { return capacity_ * sizeof(T); }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  operator std::span<const T>() const { return {data_, size_}; }  // NOLINT(google-explicit-constructor)

  void swap(Column& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  void Grow(size_t needed) { Reallocate(std::max({needed, capacity_ + capacity_ / 2, size_t{64}})); }
  void Reallocate(size_t count) {
    void* grown = std::realloc(static_cast<void*>(data_), count * sizeof(T));
    if (grown == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(grown);
    capacity_ = count;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace lockstep
