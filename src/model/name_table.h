#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace lockstep::model {

/// Interned strings. Ids are dense, from 0, in order of first appearance; id 0 is always the empty string.
/// Strings live in arena blocks and never move; a view stays valid for the table's lifetime. Not thread-safe for
/// writing.
class NameTable {
 public:
  NameTable();
  NameTable(NameTable&&) noexcept = default;
  NameTable& operator=(NameTable&&) noexcept = default;

  /// Cost: one hash of `text` and, for a new string, a copy. Returns the id of the equal string if there is one.
  NameId Intern(std::string_view text);
  /// The id of `text`, or false in `found` when it was never interned.
  bool Find(std::string_view text, NameId* id) const;
  std::string_view operator[](NameId id) const { return strings_[id.value]; }
  uint32_t size() const { return static_cast<uint32_t>(strings_.size()); }
  uint64_t resident_bytes() const;

 private:
  void Rehash(size_t slot_count);
  std::string_view Store(std::string_view text);

  std::vector<std::string_view> strings_;
  std::vector<uint32_t> hashes_;  // parallel to strings_
  std::vector<uint32_t> slots_;   // open addressing; id + 1, 0 = free; power of two
  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_used_ = 0;
  size_t block_size_ = 0;
  uint64_t arena_bytes_ = 0;
};

}  // namespace lockstep::model
