#include "model/name_table.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace lockstep::model {
namespace {

constexpr size_t kMaxBlockBytes = size_t{256} << 10;

uint32_t Hash(std::string_view text) {
  const size_t hash = std::hash<std::string_view>{}(text);
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

NameTable::NameTable() {
  Rehash(256);
  Intern("");
}

NameId NameTable::Intern(std::string_view text) {
  const uint32_t hash = Hash(text);
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  while (slots_[slot] != 0) {
    const uint32_t id = slots_[slot] - 1;
    if (hashes_[id] == hash && strings_[id] == text) return {id};
    slot = (slot + 1) & mask;
  }
  const auto id = static_cast<uint32_t>(strings_.size());
  strings_.push_back(Store(text));
  hashes_.push_back(hash);
  slots_[slot] = id + 1;
  if (strings_.size() * 2 > slots_.size()) Rehash(slots_.size() * 2);
  return {id};
}

bool NameTable::Find(std::string_view text, NameId* id) const {
  const uint32_t hash = Hash(text);
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const uint32_t candidate = slots_[slot] - 1;
    if (hashes_[candidate] == hash && strings_[candidate] == text) {
      *id = {candidate};
      return true;
    }
  }
  return false;
}

uint64_t NameTable::resident_bytes() const {
  return arena_bytes_ + strings_.capacity() * sizeof(std::string_view) + hashes_.capacity() * sizeof(uint32_t) +
         slots_.capacity() * sizeof(uint32_t);
}

void NameTable::Rehash(size_t slot_count) {
  slots_.assign(slot_count, 0);
  const size_t mask = slot_count - 1;
  for (uint32_t id = 0; id < hashes_.size(); ++id) {
    size_t slot = hashes_[id] & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = id + 1;
  }
}

std::string_view NameTable::Store(std::string_view text) {
  if (text.empty()) return {};
  if (block_size_ - block_used_ < text.size()) {
    // Blocks double from 4 KiB so that a thousand small tables stay small.
    const size_t doubled = std::min(kMaxBlockBytes, std::max(size_t{4096}, block_size_ * 2));
    block_size_ = std::max(doubled, text.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block_size_));
    arena_bytes_ += block_size_;
    block_used_ = 0;
  }
  char* stored = blocks_.back().get() + block_used_;
  std::memcpy(stored, text.data(), text.size());
  block_used_ += text.size();
  return {stored, text.size()};
}

}  // namespace lockstep::model
