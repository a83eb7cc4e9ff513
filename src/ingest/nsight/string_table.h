#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/nsight/database.h"

namespace lockstep::ingest::nsight {

/// The table StringIds, loaded once: texts that all other tables name by number. They may hold NUL bytes (blocks of
/// environment variables), and are as the file has them.
class StringTable {
 public:
  /// Empty where the file has no such table. Out: why reading ended early, or empty.
  std::string Load(const Database& database);

  /// Index into the table's rows, or kNone.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t IndexOf(int64_t id) const {
    if (id >= 0 && static_cast<uint64_t>(id) < dense_.size()) return dense_[static_cast<size_t>(id)];
    if (sparse_.empty()) return kNone;
    const auto found = sparse_.find(id);
    return found == sparse_.end() ? kNone : found->second;
  }
  std::string_view At(uint32_t index) const {
    return std::string_view(bytes_).substr(ends_[index], ends_[index + 1] - ends_[index]);
  }
  std::string_view Of(int64_t id) const {
    const uint32_t index = IndexOf(id);
    return index == kNone ? std::string_view() : At(index);
  }
  uint32_t size() const { return static_cast<uint32_t>(ends_.size() - 1); }

 private:
  std::string bytes_;
  std::vector<size_t> ends_ = {0};
  std::vector<uint32_t> dense_;  // by id, while ids are about as many as rows
  std::unordered_map<int64_t, uint32_t> sparse_;
};

}  // namespace lockstep::ingest::nsight
