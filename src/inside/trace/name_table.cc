#include "inside/trace/name_table.h"

#include <stdlib.h>
#include <string.h>

#include "inside/trace/chunk_header.h"
#include "inside/trace/file_format.h"
#include "inside/trace/trace_file.h"

namespace lockstep::instrument {
namespace {

constexpr uint32_t kMostTextBytes = 2000;
constexpr char kOtherNames[] = "(other names)";
constexpr uint32_t kOtherNumber = 1;

uint32_t HashOf(const char* text, uint32_t bytes) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (uint32_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 16777619u;
  return hash;
}

}  // namespace

// Under the lock, as what follows.
bool NameTable::MakeRoom() {
  if (count_ < capacity_) return true;
  const uint32_t capacity = capacity_ == 0 ? 256 : capacity_ * 2;
  auto* const entries = static_cast<Entry*>(realloc(entries_, capacity * sizeof(Entry)));
  if (entries == nullptr) return false;
  entries_ = entries;
  auto* const buckets = static_cast<uint32_t*>(calloc(size_t{capacity} * 2, sizeof(uint32_t)));
  if (buckets == nullptr) return false;
  free(buckets_);
  buckets_ = buckets;
  capacity_ = capacity;
  const uint32_t mask = capacity * 2 - 1;
  for (uint32_t number = 1; number < count_; ++number) {
    uint32_t at = entries_[number].hash & mask;
    while (buckets_[at] != 0) at = (at + 1) & mask;
    buckets_[at] = number;
  }
  return true;
}

uint32_t NameTable::Add(const char* text, uint32_t bytes, uint32_t hash) {
  if (!MakeRoom()) return 0;
  char* const kept = static_cast<char*>(malloc(bytes));
  if (kept == nullptr) return 0;
  memcpy(kept, text, bytes);
  if (count_ == 0) count_ = 1;
  const uint32_t number = count_++;
  entries_[number] = {kept, bytes, hash};
  const uint32_t mask = capacity_ * 2 - 1;
  uint32_t at = hash & mask;
  while (buckets_[at] != 0) at = (at + 1) & mask;
  buckets_[at] = number;
  return number;
}

uint32_t NameTable::NumberOf(const char* text, size_t length, TraceFile* file) {
  if (text == nullptr || length == 0) return 0;
  uint32_t bytes = length > kMostTextBytes ? kMostTextBytes : static_cast<uint32_t>(length);
  // Not in the middle of a character.
  if (bytes < length) {
    while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  }
  const uint32_t hash = HashOf(text, bytes);
  Lock();
  if (count_ == 0) {
    constexpr uint32_t kBytes = sizeof(kOtherNames) - 1;
    if (Add(kOtherNames, kBytes, HashOf(kOtherNames, kBytes)) != 0) Write(kOtherNumber, file);
  }
  uint32_t number = 0;
  if (capacity_ > 0) {
    const uint32_t mask = capacity_ * 2 - 1;
    for (uint32_t at = hash & mask; buckets_[at] != 0; at = (at + 1) & mask) {
      const Entry& entry = entries_[buckets_[at]];
      if (entry.hash != hash || entry.bytes != bytes || memcmp(entry.text, text, bytes) != 0) continue;
      number = buckets_[at];
      break;
    }
  }
  if (number == 0 && count_ <= kMaxName) {
    number = Add(text, bytes, hash);
    if (number != 0) Write(number, file);
  }
  if (number == 0) {
    number = kOtherNumber;
    file->CountDroppedName();
  }
  Unlock();
  return number;
}

void NameTable::Write(uint32_t number, TraceFile* file) {
  if (!file->is_open()) return;
  const Entry& entry = entries_[number];
  const uint32_t whole = static_cast<uint32_t>(sizeof(NameEntry)) + ((entry.bytes + 7) & ~7u);
  if (next_ == nullptr || next_ + whole > end_) {
    chunk_bytes_ = next_ == nullptr ? kPageBytes : chunk_bytes_ < 16 * kPageBytes ? chunk_bytes_ * 4 : chunk_bytes_;
    // What a thread left over may be too small for a text.
    const Chunk chunk = file->Take(chunk_bytes_, static_cast<uint32_t>(sizeof(ChunkHeader)) + whole);
    if (chunk.header == nullptr) {
      file->CountDroppedName();
      return;
    }
    WriteChunkHeader(chunk, ChunkKind::kNames, 0, file);
    next_ = reinterpret_cast<char*>(chunk.header + 1);
    end_ = reinterpret_cast<char*>(chunk.header) + chunk.size_bytes;
  }
  memcpy(next_ + sizeof(NameEntry), entry.text, entry.bytes);
  __atomic_store_n(reinterpret_cast<uint64_t*>(next_), number | uint64_t{entry.bytes} << 32, __ATOMIC_RELEASE);
  next_ += whole;
}

void NameTable::BeginFile(TraceFile* file) {
  Lock();
  next_ = end_ = nullptr;
  for (uint32_t number = 1; number < count_; ++number) Write(number, file);
  Unlock();
}

}  // namespace lockstep::instrument
