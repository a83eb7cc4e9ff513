#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::ingest {

/// Of the whole content, eight bytes at a time: lists of a dump often differ in one element only.
inline uint64_t HashBytes(std::string_view bytes) {
  const auto mix = [](uint64_t word) {
    word *= 0x9E3779B97F4A7C15U;
    return word ^ (word >> 32);
  };
  uint64_t hash = mix(bytes.size());
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    hash = mix(hash ^ word);
  }
  uint64_t rest = 0;
  if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  return mix(hash ^ rest);
}

/// Lists of T, each content once: equal lists have equal indices. [0] is the empty list. One thread.
/// Cost: O(length) a look-up; 12 bytes a list beside its content.
template <typename T>
class ListTable {
 public:
  ListTable() : begins_{0, 0}, slots_(kFirstSlots, 0) {}

  uint32_t size() const { return static_cast<uint32_t>(begins_.size() - 1); }
  std::span<const T> operator[](uint32_t idx) const {
    return std::span<const T>(items_).subspan(begins_[idx], begins_[idx + 1] - begins_[idx]);
  }

  /// The index of the list, which is added when it is new.
  uint32_t Add(std::span<const T> list) {
    if (list.empty()) return 0;
    if (const uint32_t last = last_; last != 0 && Same(last, list)) return last;
    size_t slot = Hash(list) & (slots_.size() - 1);
    while (slots_[slot] != 0) {
      if (Same(slots_[slot], list)) return last_ = slots_[slot];
      slot = (slot + 1) & (slots_.size() - 1);
    }
    const uint32_t idx = size();
    items_.insert(items_.end(), list.begin(), list.end());
    begins_.push_back(items_.size());
    slots_[slot] = idx;
    if (size() * 2 > slots_.size()) Grow();
    return last_ = idx;
  }

 private:
  static constexpr size_t kFirstSlots = 64;

  bool Same(uint32_t idx, std::span<const T> list) const {
    const std::span<const T> other = (*this)[idx];
    return other.size() == list.size() && std::memcmp(other.data(), list.data(), list.size_bytes()) == 0;
  }

  static size_t Hash(std::span<const T> list) {
    return HashBytes({reinterpret_cast<const char*>(list.data()), list.size_bytes()});
  }

  void Grow() {
    slots_.assign(slots_.size() * 4, 0);
    for (uint32_t idx = 1; idx < size(); ++idx) {
      size_t slot = Hash((*this)[idx]) & (slots_.size() - 1);
      while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = idx;
    }
  }

  std::vector<T> items_;
  std::vector<size_t> begins_;
  std::vector<uint32_t> slots_;  // Indices; 0 = free.
  uint32_t last_ = 0;            // Neighbouring operations often have the same list.
};

/// Texts by number, each content once; [0] is the empty text. Keeps no copy: what is added must stay where it is.
class TextTable {
 public:
  TextTable() : texts_{""}, slots_(kFirstSlots, 0) {}

  uint32_t size() const { return static_cast<uint32_t>(texts_.size()); }
  std::string_view operator[](uint32_t idx) const { return texts_[idx]; }

  /// The text's index, or 0 when it is not there (or empty).
  uint32_t Find(std::string_view text) const { return slots_[Slot(text)]; }

  uint32_t Add(std::string_view text) {
    if (text.empty()) return 0;
    const size_t slot = Slot(text);
    if (slots_[slot] != 0) return slots_[slot];
    const uint32_t idx = size();
    texts_.push_back(text);
    slots_[slot] = idx;
    if (size() * 2 > slots_.size()) Grow();
    return idx;
  }

 private:
  static constexpr size_t kFirstSlots = 256;

  size_t Slot(std::string_view text) const {
    size_t slot = HashBytes(text) & (slots_.size() - 1);
    while (slots_[slot] != 0 && texts_[slots_[slot]] != text) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  void Grow() {
    slots_.assign(slots_.size() * 4, 0);
    for (uint32_t idx = 1; idx < size(); ++idx) slots_[Slot(texts_[idx])] = idx;
  }

  std::vector<std::string_view> texts_;
  std::vector<uint32_t> slots_;
};

}  // namespace lockstep::ingest
