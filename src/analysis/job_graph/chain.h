#pragma once

#include <cstdint>
#include <vector>

#include "analysis/job_graph/rank_graph.h"

namespace lockstep::analysis {

/// Sums of the time along a chain by (kind, name), until a node is needed.
class Chain {
 public:
  explicit Chain(size_t name_count) : slot_of_name_(name_count, 0) {}

  /// Goes on from `node` of `graph`; what was not flushed is forgotten.
  void Begin(RankStepGraph* graph, uint32_t node) {
    graph_ = graph;
    node_ = node;
    items_.clear();
  }
  bool active() const { return graph_ != nullptr; }
  void Stop() { graph_ = nullptr; }
  uint32_t NewNode() { return graph_->node_count++; }

  void Add(graph::EdgeKind kind, NameId label, int64_t duration_ns) {
    if (duration_ns == 0) return;
    uint32_t& slot = slot_of_name_[label.value];
    if (slot < items_.size() && items_[slot].label == label && items_[slot].kind == kind) {
      items_[slot].duration_ns += duration_ns;
      return;
    }
    slot = static_cast<uint32_t>(items_.size());
    items_.push_back({kind, label, duration_ns});
  }

  /// Leads to `node` with all that was added since the last one, and goes on from there.
  void FlushTo(uint32_t node) {
    if (items_.empty()) items_.push_back({graph::EdgeKind::kOrder, NameId{}, 0});
    for (size_t i = 0; i < items_.size(); ++i) {
      const uint32_t to = i + 1 == items_.size() ? node : NewNode();
      graph_->edges.push_back({node_, to, items_[i].duration_ns, items_[i].label, items_[i].kind});
      node_ = to;
    }
    items_.clear();
  }
  uint32_t Flush() {
    const uint32_t node = NewNode();
    FlushTo(node);
    return node;
  }
  /// Goes on from `node`, whose instant is that of the end of the chain so far, which stays open.
  uint32_t node() const { return node_; }

 private:
  struct Item {
    graph::EdgeKind kind;
    NameId label;
    int64_t duration_ns;
  };
  RankStepGraph* graph_ = nullptr;
  uint32_t node_ = 0;
  std::vector<Item> items_;
  std::vector<uint32_t> slot_of_name_;  // where the name was last put; may be stale
};

}  // namespace lockstep::analysis
