#include "analysis/what_if/work_table.h"

#include <algorithm>

#include "base/median.h"

namespace lockstep::analysis {

using graph::EdgeKind;

bool WorkTable::IsWork(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kHost:
    case EdgeKind::kDataLoader:
    case EdgeKind::kCompute:
    case EdgeKind::kCopy:
    case EdgeKind::kLaunch:
    case EdgeKind::kKernelGap:
    case EdgeKind::kDelay: return true;
    case EdgeKind::kTransfer:
    case EdgeKind::kOrder:
    case EdgeKind::kSync:
    case EdgeKind::kJoin: break;
  }
  return false;
}

WorkTable::WorkTable(const graph::Graph& graph, size_t rank_count)
    : rank_count_(rank_count), thing_of_(graph.edge_count(), 0), takes_part_(rank_count, false) {
  std::unordered_map<uint64_t, uint32_t> things;
  for (uint32_t i = 0; i < graph.edge_count(); ++i) {
    const graph::Edge& edge = graph.edge(i);
    if (!IsWork(edge.kind) || edge.owner >= rank_count) continue;
    const uint64_t key = (uint64_t{edge.label} << 8U) | static_cast<uint64_t>(edge.kind);
    thing_of_[i] = things.emplace(key, static_cast<uint32_t>(things.size())).first->second;
    takes_part_[edge.owner] = true;
  }
  thing_count_ = things.size();
  own_ns_.assign(rank_count * thing_count_, 0);
  for (uint32_t i = 0; i < graph.edge_count(); ++i) {
    const graph::Edge& edge = graph.edge(i);
    if (!IsWork(edge.kind) || edge.owner >= rank_count || edge.weight_ns <= 0) continue;
    own_ns_[edge.owner * thing_count_ + thing_of_[i]] += edge.weight_ns;
  }
}

int64_t WorkTable::MedianNs(uint32_t thing, size_t except) const {
  std::vector<int64_t> values;
  for (size_t rank = 0; rank < rank_count_; ++rank) {
    if (takes_part_[rank] && rank != except) values.push_back(own_ns(rank, thing));
  }
  if (values.empty()) return except == SIZE_MAX ? 0 : own_ns(except, thing);
  return LowerMedian(&values);
}

int64_t WorkTable::MedianAmong(uint32_t thing, const std::vector<bool>& among) const {
  std::vector<int64_t> values;
  for (size_t rank = 0; rank < rank_count_; ++rank) {
    if (takes_part_[rank] && among[rank]) values.push_back(own_ns(rank, thing));
  }
  if (values.empty()) return 0;
  return LowerMedian(&values);
}

}  // namespace lockstep::analysis
