#pragma once

#include <cstdint>
#include <vector>

#include "ingest/span_trace/wire_format.h"

namespace lockstep::ingest::span_trace {

/// Converts ticks to the host's wall clock by the clocks' values at the anchors: straight lines from one to the next,
/// of each millisecond the one that was read fastest. Before the first and after the last anchor the whole
/// recording's rate holds.
class TickClock {
 public:
  explicit TickClock(std::vector<Anchor> anchors);

  /// Never fails: impossible values are limited to +-2^62.
  int64_t ToWall(uint64_t tick) const;
  /// How many times the wall clock was set by more than a millisecond meanwhile; spans keep their lengths.
  uint64_t step_count() const { return step_count_; }
  /// How far a time may be off, by how long the clocks took to be read; the worst anchor's.
  int64_t uncertainty_ns() const { return uncertainty_ns_; }
  uint64_t last_tick() const { return lines_.empty() ? 0 : lines_.back().tick; }

 private:
  struct Line {
    uint64_t tick;  ///< Where it begins.
    int64_t wall_ns;
    double ns_per_tick;
  };
  std::vector<Line> lines_;  ///< Ascending; the first also serves what is before it.
  uint64_t step_count_ = 0;
  int64_t uncertainty_ns_ = 0;
};

}  // namespace lockstep::ingest::span_trace
