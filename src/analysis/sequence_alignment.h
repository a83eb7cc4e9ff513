#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::analysis {

/// One element of a sequence that is to be aligned with its peers.
struct SequenceToken {
  uint64_t exact = 0;    ///< Equal for elements that agree in everything that is known.
  uint64_t loose = 0;    ///< Equal for elements that can be the same thing at all.
  int64_t time_ns = 0;   ///< When it ended, on the list's own clock. Chooses between alignments that are equally good.
  int64_t start_ns = 0;  ///< When it began; elements that are the same thing are under way at one time.
};

struct SequenceAlignment {
  /// Per list, per element: its slot. Slots count from 0 in the common order; two lists' elements of one slot are the
  /// same thing. Every element has a slot, alone if need be.
  std::vector<std::vector<uint32_t>> slots;
  uint32_t slot_count = 0;
  bool ambiguous = false;  ///< Several alignments were equally good; the one nearest in time was taken.
};

/// Aligns lists that are windows on one common sequence: they may begin later, end earlier and lack elements. Equal
/// lists are joined element by element; clipped ones by their longest overlap; others by a shortest edit script, within
/// a bound on its length, beyond which equal occurrences in common order are joined. Where the tokens leave a choice,
/// times decide: elements that are one end together, so that their ends lie equally far apart on the two lists' clocks,
/// whatever these are. What only the loose tokens allow is joined where the times say so as well. Cost: O(total length)
/// for equal and clipped lists; O(n log n + n d) otherwise, d at most 1,000 edits. Source:
/// docs/metrics.md#joining-ranks.
SequenceAlignment AlignSequences(const std::vector<std::vector<SequenceToken>>& lists);

}  // namespace lockstep::analysis
