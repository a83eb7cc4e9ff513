#include "analysis/what_if/operation_world.h"

#include <algorithm>
#include <numeric>

#include "analysis/pass.h"

namespace lockstep::analysis {
namespace {

using graph::EdgeKind;
using graph::NodeId;

// Clocks of workers differ by milliseconds; what contradicts the schedule by more than this is taken for such an error.
constexpr int64_t kClockErrorNs = 10'000'000;
// Of all work and delays together: no path through the graph is longer, with any lever.
constexpr int64_t kMaxTotalNs = int64_t{1} << 60;
constexpr size_t kMaxOperations = size_t{1} << 29;

int64_t EndOf(const model::Operation& operation) { return operation.start_ns + operation.duration_ns; }

}  // namespace

Result<OperationGraph> OperationGraph::Create(const model::OperationTrace& trace, model::Ledger* ledger) {
  if (trace.operations.size() > kMaxOperations) {
    return Error{ErrorCode::kLimitExceeded, "more operations than a simulation holds; give fewer steps"};
  }
  OperationGraph made;
  made.schedule_ = MakeSchedule(trace, ledger);
  made.FindSteps(trace);
  RETURN_IF_ERROR(made.MeasureWork(trace));
  RETURN_IF_ERROR(made.BuildGraph());
  return made;
}

void OperationGraph::FindSteps(const model::OperationTrace& trace) {
  std::vector<int64_t> last_ns;
  for (size_t i = 0; i < trace.operations.size(); ++i) {
    const model::Operation& operation = trace.operations[i];
    if (steps_.empty() || steps_.back() != operation.step) {
      steps_.push_back(operation.step);
      first_start_ns_.push_back(operation.start_ns);
      last_ns.push_back(EndOf(operation));
    }
    first_start_ns_.back() = std::min(first_start_ns_.back(), operation.start_ns);
    last_ns.back() = std::max(last_ns.back(), EndOf(operation));
    step_of_.push_back(static_cast<uint32_t>(steps_.size() - 1));
  }
  for (size_t s = 0; s < steps_.size(); ++s) observed_ns_.push_back(last_ns[s] - first_start_ns_[s]);
}

Status OperationGraph::MeasureWork(const model::OperationTrace& trace) {
  const size_t count = trace.operations.size();
  std::vector<int64_t> ready_ns(count, INT64_MIN);
  for (const auto& [from, to] : schedule_.dependencies) {
    ready_ns[to] = std::max(ready_ns[to], EndOf(trace.operations[from]));
  }
  std::vector<int64_t> together_ns(schedule_.group_count, INT64_MIN);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t group = schedule_.group_of[i];
    if (group != OperationSchedule::kNone)
      together_ns[group] = std::max(together_ns[group], trace.operations[i].start_ns);
  }
  observed_.delayed = true;
  observed_.work_ns.resize(count);
  delays_ns_.resize(count);
  int64_t total_ns = 0;
  for (size_t i = 0; i < count; ++i) {
    const model::Operation& operation = trace.operations[i];
    const uint32_t group = schedule_.group_of[i];
    const int64_t begin_ns = group == OperationSchedule::kNone ? operation.start_ns : together_ns[group];
    const int64_t work_ns = EndOf(operation) - begin_ns;
    observed_.work_ns[i] = work_ns <= -kClockErrorNs ? 0 : work_ns;
    const int64_t met_ns = ready_ns[i] == INT64_MIN ? first_start_ns_[step_of_[i]] : ready_ns[i];
    const int64_t delay_ns = operation.start_ns - met_ns;
    delays_ns_[i] = delay_ns <= -kClockErrorNs ? 0 : delay_ns;
    for (const int64_t part_ns : {observed_.work_ns[i], delays_ns_[i]}) {
      if (__builtin_add_overflow(total_ns, std::max<int64_t>(part_ns, 0), &total_ns) || total_ns > kMaxTotalNs) {
        return Error{ErrorCode::kCorruptData, "times of one step lie years apart, so nothing can be simulated"};
      }
    }
  }
  return {};
}

Status OperationGraph::BuildGraph() {
  // An operation is three instants: all it waits for is done, it starts, it ends.
  graph::GraphBuilder builder;
  const size_t count = observed_.work_ns.size();
  const NodeId step_nodes = builder.AddNodes(static_cast<uint32_t>(steps_.size()));
  std::vector<NodeId> nodes(count, graph::kNone);
  for (size_t i = 0; i < count; ++i) {
    if (schedule_.takes_part[i]) nodes[i] = builder.AddNodes(3);
  }
  const NodeId groups = builder.AddNodes(schedule_.group_count);
  const auto add = [&](NodeId from, NodeId to, int64_t weight_ns, EdgeKind kind, size_t operation) {
    graph::Edge edge;
    edge.from = from;
    edge.to = to;
    edge.weight_ns = weight_ns;
    edge.kind = kind;
    edge.label = static_cast<uint32_t>(operation);
    builder.AddEdge(edge);
  };
  std::vector<bool> waits(count, false);
  for (const auto& [from, to] : schedule_.dependencies) {
    add(nodes[from] + 2, nodes[to], 0, EdgeKind::kOrder, to);
    waits[to] = true;
  }
  for (size_t i = 0; i < count; ++i) {
    if (nodes[i] == graph::kNone) continue;
    if (!waits[i]) add(step_nodes + step_of_[i], nodes[i], 0, EdgeKind::kOrder, i);
    add(nodes[i], nodes[i] + 1, delays_ns_[i], EdgeKind::kDelay, i);
    const uint32_t group = schedule_.group_of[i];
    if (group == OperationSchedule::kNone) {
      add(nodes[i] + 1, nodes[i] + 2, observed_.work_ns[i], EdgeKind::kCompute, i);
    } else {
      add(nodes[i] + 1, groups + group, 0, EdgeKind::kJoin, i);
      add(groups + group, nodes[i] + 2, observed_.work_ns[i], EdgeKind::kTransfer, i);
    }
  }
  std::vector<NodeId> new_ids;
  ASSIGN_OR_RETURN(graph_, builder.Build(&new_ids));
  end_nodes_.assign(count, graph::kNone);
  for (size_t i = 0; i < count; ++i) {
    if (nodes[i] != graph::kNone) end_nodes_[i] = new_ids[nodes[i] + 2];
  }
  return {};
}

std::vector<int64_t> OperationGraph::StepTimes(const OperationWorld& world) const {
  const std::vector<int64_t> times = graph::EarliestTimes(graph_, [&](uint32_t i) -> int64_t {
    const graph::Edge& edge = graph_.edge(i);
    switch (edge.kind) {
      case EdgeKind::kDelay: return world.delayed ? edge.weight_ns : 0;
      case EdgeKind::kCompute:
      case EdgeKind::kTransfer: return world.work_ns[edge.label];
      default: return edge.weight_ns;
    }
  });
  std::vector<int64_t> step_ns(steps_.size(), 0);
  for (size_t i = 0; i < end_nodes_.size(); ++i) {
    if (end_nodes_[i] != graph::kNone) step_ns[step_of_[i]] = std::max(step_ns[step_of_[i]], times[end_nodes_[i]]);
  }
  return step_ns;
}

double MeanStep(const std::vector<int64_t>& times_ns) {
  if (times_ns.empty()) return 0;
  double sum = 0;
  for (const int64_t time_ns : times_ns) sum += static_cast<double>(time_ns);
  return sum / static_cast<double>(times_ns.size());
}

}  // namespace lockstep::analysis
