#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/ledger.h"

namespace lockstep::ingest {

/// Kinds of damage in a trace that were repaired or skipped.
enum class DamageKind : uint8_t {
  kTruncatedFile,  ///< The text ends inside the trace.
  kBadEvent,       ///< Not JSON; skipped to the next event.
  kOversizedEvent,
  kInvalidEscape,
  kControlCharacter,
  kInvalidUtf8,
  kUnescapedQuote,
  kNonFiniteNumber,
  kIntegerOverflow,
  kWrongType,
  kMissingKey,
  kNegativeDuration,
  kTrailingData,
  kBadMetadata,
  kDamagedStream,  ///< The compressed stream failed; the text before it was read.
  // Of Perfetto's packets (ingest/perfetto).
  kBadPacket,         ///< Not a packet, or its fields break off; skipped.
  kLostPackets,       ///< The producer says that packets are missing.
  kMissingState,      ///< A packet needs names or defaults that were lost; it was skipped.
  kUnmatchedEnd,      ///< The end of a slice that has not begun.
  kUnfinishedSlice,   ///< A slice without an end.
  kUnknownClock,      ///< A clock that nothing relates to the trace's; the event was skipped.
  kUnreadablePacket,  ///< A kind of packet that is known and not read: compressed packets.
  kCount,
};

/// Counts of damage of one file with the offset of the first of each kind.
class Damage {
 public:
  void Add(DamageKind kind, uint64_t byte_offset, std::string detail = {});
  uint64_t count(DamageKind kind) const { return kinds_[static_cast<size_t>(kind)].count; }
  /// Adds these counts to `other` and forgets them.
  void MoveTo(Damage* other);
  /// One ledger row per kind that occurred, in the order of the enum.
  void WriteTo(const std::string& source, model::Ledger* ledger) const;

 private:
  struct Seen {
    uint64_t count = 0;
    uint64_t first_offset = 0;
    std::string detail;
  };
  std::array<Seen, static_cast<size_t>(DamageKind::kCount)> kinds_;
};

}  // namespace lockstep::ingest
