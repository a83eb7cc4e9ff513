#include "ingest/nsight/string_table.h"

namespace lockstep::ingest::nsight {

std::string StringTable::Load(const Database& database) {
  TableScan rows(database, "StringIds", {"id", "value"});
  rows.ForEach([&] {
    if (rows.IsNull(0) || size() == kNone - 1) return;
    const int64_t id = rows.Int(0);
    const uint32_t index = size();
    bytes_.append(rows.Text(1));
    ends_.push_back(bytes_.size());
    // Ids count from 0; gaps come from those who filter exports.
    const auto limit = uint64_t{rows.row_count()} * 8 + 4096;
    if (id >= 0 && static_cast<uint64_t>(id) < limit) {
      if (dense_.size() <= static_cast<size_t>(id)) dense_.resize(static_cast<size_t>(id) + 1, kNone);
      dense_[static_cast<size_t>(id)] = index;
    } else {
      sparse_.insert_or_assign(id, index);
    }
  });
  // An id beyond the first limits went to the map although later ones grew past it.
  for (auto entry = sparse_.begin(); entry != sparse_.end();) {
    const bool is_dense = entry->first >= 0 && static_cast<uint64_t>(entry->first) < dense_.size();
    if (is_dense && dense_[static_cast<size_t>(entry->first)] == kNone) {
      dense_[static_cast<size_t>(entry->first)] = entry->second;
    }
    entry = is_dense ? sparse_.erase(entry) : std::next(entry);
  }
  return rows.failure();
}

}  // namespace lockstep::ingest::nsight
