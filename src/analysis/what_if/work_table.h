#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/graph/graph.h"

namespace lockstep::analysis {

/// How long each rank of one step graph works at each thing: a thing is what time is spent on and its name.
class WorkTable {
 public:
  WorkTable(const graph::Graph& graph, size_t rank_count);

  static bool IsWork(graph::EdgeKind kind);  ///< A rank's own time, and not waiting, order or transfer.
  size_t thing_count() const { return thing_count_; }
  /// Thing of an edge that is work; undefined for others.
  uint32_t thing_of(uint32_t edge) const { return thing_of_[edge]; }
  int64_t own_ns(size_t rank, uint32_t thing) const { return own_ns_[rank * thing_count_ + thing]; }

  /// What the middle one of the ranks that take part takes (of two the shorter one); of `except`'s peers when it is a
  /// rank. Ranks without edges do not take part.
  int64_t MedianNs(uint32_t thing, size_t except = SIZE_MAX) const;
  /// The same of the ranks for which `among` holds.
  int64_t MedianAmong(uint32_t thing, const std::vector<bool>& among) const;

 private:
  size_t rank_count_ = 0;
  size_t thing_count_ = 0;
  std::vector<uint32_t> thing_of_;  // by edge
  std::vector<int64_t> own_ns_;     // rank-major
  std::vector<bool> takes_part_;
};

}  // namespace lockstep::analysis
