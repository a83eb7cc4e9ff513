#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/flight_recorder/dump_keys.h"
#include "ingest/flight_recorder/entry_fields.h"
#include "model/evidence/flight_record.h"

namespace lockstep::ingest {

/// Whether an entry's value of this key is a number that differs from entry to entry: a count or a time.
bool IsVaryingNumber(DumpKey key);

/// The forms of entries of a pickled dump without their varying numbers, and which form follows which: training repeats
/// its steps, so that the next entry's bytes are mostly known. Only a guess; the reader compares every byte.
/// One dump, one thread.
class EntryPatterns {
 public:
  /// Bytes as they stand in the dump, and behind them a number of `number`; of an entry's last piece there is none.
  struct Piece {
    std::string_view bytes;
    DumpKey number = DumpKey::kOther;
  };

  /// An entry without its numbers, and what came after it the last time.
  struct Pattern {
    evidence::FlightEntry entry;
    EntryFields::GroupKey group;
    uint32_t first_piece = 0;
    uint32_t piece_count = 0;
    uint32_t next = 0;
    ptrdiff_t byte_count = 0;  ///< Of all pieces.
  };

  /// What the next entry is likely to look like; nullptr = nothing is known. Valid until Learn.
  const Pattern* Expected() const { return last_ == kNone ? nullptr : &patterns_[patterns_[last_].next]; }
  std::span<const Piece> PiecesOf(const Pattern& pattern) const {
    return std::span(pieces_).subspan(pattern.first_piece, pattern.piece_count);
  }
  /// It was so.
  void Confirm() { last_ = patterns_[last_].next; }
  /// It was not: `entry`, of these pieces, came. Their bytes have to stay where they are.
  void Learn(std::span<const Piece> pieces, const evidence::FlightEntry& entry, const EntryFields::GroupKey& group);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kMaxPatterns = 4096;  ///< A dump whose entries are all different gains nothing from more.

  std::vector<Pattern> patterns_;
  std::vector<Piece> pieces_;
  std::unordered_map<uint64_t, uint32_t> by_hash_;  ///< Two of one hash: a wrong guess at worst.
  uint32_t last_ = kNone;
};

}  // namespace lockstep::ingest
