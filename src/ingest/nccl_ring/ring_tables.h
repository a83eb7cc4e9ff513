#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/nccl_ring/nccl_ring.h"
#include "ingest/nccl_ring/ring_pulse.h"
#include "inside/nccl_profiler/ring_format.h"

namespace lockstep::ingest {

/// Tables of a ring that is read piece by piece while its process writes it.
constexpr uint64_t kMostRingElementBytes = 4096;

inline Error CorruptRing(const char* message) { return {.code = ErrorCode::kCorruptData, .message = message}; }

/// Errors: kCorruptData for what is not a ring, of another version, or with an impossible number of communicators.
inline Result<instrument::RingHeader> ReadRingHeader(const ReadRingAt& read) {
  constexpr uint64_t kMostCommunicators = 4096;
  instrument::RingHeader header;
  std::string head(sizeof header, '\0');
  if (!read(0, head) || !StartsNcclRing(head)) return CorruptRing("is not a record of lockstep's NCCL plugin");
  std::memcpy(&header, head.data(), sizeof header);
  if (header.version != instrument::kRingVersion || header.communicator_capacity > kMostCommunicators) {
    return CorruptRing("is another version of the NCCL plugin's record, or its header is damaged");
  }
  return header;
}

/// Appends `count` elements from `first` on of the table at `offset`, as far as they are known here: they may have
/// grown in later versions.
template <typename T>
Status ReadRingElements(const ReadRingAt& read, uint64_t offset, uint64_t first, uint64_t count, uint64_t element_bytes,
                        std::vector<T>* into) {
  constexpr uint64_t kInPiece = 256;
  constexpr uint64_t kMostOffset = INT64_MAX / 4;
  if (count == 0) return {};
  if (element_bytes < sizeof(T) || element_bytes > kMostRingElementBytes || offset > kMostOffset ||
      first + count > kMostOffset / kMostRingElementBytes) {
    return CorruptRing("the NCCL plugin's record has a damaged header");
  }
  std::string piece;
  while (count > 0) {
    const uint64_t some = std::min(count, kInPiece);
    piece.resize(some * element_bytes);
    if (!read(offset + first * element_bytes, piece)) return CorruptRing("the NCCL plugin's record is cut short");
    for (uint64_t i = 0; i < some; ++i) std::memcpy(&into->emplace_back(), piece.data() + i * element_bytes, sizeof(T));
    first += some;
    count -= some;
  }
  return {};
}

}  // namespace lockstep::ingest
