#include "model/name_table.h"

#include <algorithm>
#include <cstring>

namespace lockstep::model {
namespace {

constexpr size_t kMaxBlockBytes = size_t{256} << 10;

uint64_t Load64(const char* from) {
  uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

__extension__ using Uint128 = unsigned __int128;

/// Product of two words folded to one: every input bit reaches every output bit.
uint64_t Fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<Uint128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// Sixteen bytes a multiplication; the last sixteen overlap what came before, so there is no loop over a rest.
/// Not for hostile input: the table stays correct and gets slower.
uint32_t Hash(std::string_view text) {
  constexpr uint64_t kA = 0x9E3779B97F4A7C15;
  constexpr uint64_t kB = 0xD1B54A32D192ED03;
  const char* at = text.data();
  size_t left = text.size();
  uint64_t hash = left * kA;
  if (left < 16) {
    char padded[16] = {};
    if (left > 0) std::memcpy(padded, at, left);
    hash = Fold(Load64(padded) ^ kA, Load64(padded + 8) ^ kB ^ hash);
  } else {
    for (; left > 16; at += 16, left -= 16) hash = Fold(Load64(at) ^ kA, Load64(at + 8) ^ hash);
    const char* const last = text.data() + text.size() - 16;
    hash = Fold(Load64(last) ^ kB, Load64(last + 8) ^ hash);
  }
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
