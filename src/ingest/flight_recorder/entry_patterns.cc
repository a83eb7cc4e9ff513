#include "ingest/flight_recorder/entry_patterns.h"

#include "ingest/flight_recorder/list_table.h"

namespace lockstep::ingest {

bool IsVaryingNumber(DumpKey key) {
  switch (key) {
    case DumpKey::kRecordId:
    case DumpKey::kCollectiveSequence:
    case DumpKey::kP2pSequence:
    case DumpKey::kOperationId:
    case DumpKey::kTimeCreatedNs:
    case DumpKey::kTimeStartedNs:
    case DumpKey::kTimeCompletedNs:
    case DumpKey::kDurationMs: return true;
    default: return false;
  }
}

void EntryPatterns::Learn(std::span<const Piece> pieces, const evidence::FlightEntry& entry,
                          const EntryFields::GroupKey& group) {
  uint64_t hash = pieces.size();
  ptrdiff_t byte_count = 0;
  for (const Piece& piece : pieces) {
    hash = (hash ^ HashBytes(piece.bytes)) * 0x9E3779B97F4A7C15U;
    byte_count += static_cast<ptrdiff_t>(piece.bytes.size());
  }
  const auto [place, is_new] = by_hash_.try_emplace(hash, static_cast<uint32_t>(patterns_.size()));
  if (is_new && patterns_.size() >= kMaxPatterns) {
    by_hash_.erase(place);
    last_ = kNone;
    return;
  }
  const uint32_t now = place->second;
  if (is_new) {
    Pattern& pattern = patterns_.emplace_back();
    pattern.entry = entry;
    pattern.group = group;
    pattern.first_piece = static_cast<uint32_t>(pieces_.size());
    pattern.piece_count = static_cast<uint32_t>(pieces.size());
    pattern.next = now;
    pattern.byte_count = byte_count;
    pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
  }
  if (last_ != kNone) patterns_[last_].next = now;
  last_ = now;
}

}  // namespace lockstep::ingest
