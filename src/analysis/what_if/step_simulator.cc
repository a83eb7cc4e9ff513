#include "analysis/what_if/step_simulator.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep::analysis {
namespace {

using graph::EdgeKind;

int64_t Shorter(int64_t weight_ns, double speedup) {
  return speedup == 0 ? 0 : static_cast<int64_t>(static_cast<double>(weight_ns) / speedup);
}

int64_t Times(int64_t weight_ns, double ratio) {
  return static_cast<int64_t>(std::llround(static_cast<double>(weight_ns) * ratio));
}

}  // namespace

template <typename WeightOf>
int64_t StepSimulator::Run(const WeightOf& weight_of) const {
  const auto times =
      graph::EarliestTimes(step_.graph, [&](uint32_t i) { return weight_of(i, step_.graph.edge(i).weight_ns); });
  return times[step_.sink] - times[step_.source];
}

int64_t StepSimulator::Transfers(double speedup) const {
  return Run([&](uint32_t i, int64_t weight_ns) {
    const bool is_transfer = step_.graph.edge(i).kind == EdgeKind::kTransfer && weight_ns > 0;
    return is_transfer ? Shorter(weight_ns, speedup) : weight_ns;
  });
}

/// A rank cannot transfer more than one thing at a time.
int64_t StepSimulator::LongestTransfers() const {
  std::vector<int64_t> sums(rank_count_, 0);
  for (const graph::Edge& edge : step_.graph.edges()) {
    if (edge.kind == EdgeKind::kTransfer && edge.owner < rank_count_)
      sums[edge.owner] += std::max<int64_t>(edge.weight_ns, 0);
  }
  return sums.empty() ? 0 : *std::max_element(sums.begin(), sums.end());
}

std::vector<int64_t> StepSimulator::MediansOfAll() const {
  std::vector<int64_t> medians(table_.thing_count());
  for (uint32_t thing = 0; thing < medians.size(); ++thing) medians[thing] = table_.MedianNs(thing);
  return medians;
}

/// The chosen ranks' work scaled so that each thing takes what `things_ns` says.
int64_t StepSimulator::ScaledTo(const std::vector<int64_t>& things_ns, const std::vector<bool>& chosen) const {
  return Run([&](uint32_t i, int64_t weight_ns) {
    const graph::Edge& edge = step_.graph.edge(i);
    if (weight_ns <= 0 || edge.owner >= rank_count_ || !chosen[edge.owner] || !WorkTable::IsWork(edge.kind)) {
      return weight_ns;
    }
    const uint32_t thing = table_.thing_of(i);
    return Times(weight_ns,
                 static_cast<double>(things_ns[thing]) / static_cast<double>(table_.own_ns(edge.owner, thing)));
  });
}

int64_t StepSimulator::AtMedian(const std::vector<size_t>& ranks) const {
  std::vector<bool> chosen(rank_count_, false);
  for (const size_t rank : ranks) chosen[rank] = true;
  std::vector<bool> others(rank_count_);
  for (size_t rank = 0; rank < rank_count_; ++rank) others[rank] = !chosen[rank];
  std::vector<int64_t> medians(table_.thing_count());
  for (uint32_t thing = 0; thing < medians.size(); ++thing) medians[thing] = table_.MedianAmong(thing, others);
  return ScaledTo(medians, chosen);
}

/// Kernels (of ranks without any: what their threads do) scaled so that a stage's ranks have as much on average as
/// those of all stages.
int64_t StepSimulator::EvenStages(const std::vector<std::vector<size_t>>& stages) const {
  std::vector<int64_t> kernels_ns(rank_count_, 0);
  std::vector<int64_t> host_ns(rank_count_, 0);
  for (const graph::Edge& edge : step_.graph.edges()) {
    if (edge.owner >= rank_count_ || edge.weight_ns <= 0) continue;
    if (edge.kind == EdgeKind::kCompute) kernels_ns[edge.owner] += edge.weight_ns;
    if (edge.kind == EdgeKind::kHost) host_ns[edge.owner] += edge.weight_ns;
  }
  const bool has_kernels = std::any_of(kernels_ns.begin(), kernels_ns.end(), [](int64_t sum_ns) { return sum_ns > 0; });
  const EdgeKind kind = has_kernels ? EdgeKind::kCompute : EdgeKind::kHost;
  const std::vector<int64_t>& work_ns = has_kernels ? kernels_ns : host_ns;
  std::vector<double> means;
  double sum = 0;
  for (const std::vector<size_t>& ranks : stages) {
    double of_stage = 0;
    for (const size_t rank : ranks) of_stage += static_cast<double>(work_ns[rank]);
    means.push_back(ranks.empty() ? 0 : of_stage / static_cast<double>(ranks.size()));
    sum += means.back();
  }
  std::vector<double> ratios(rank_count_, 1);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (const size_t rank : stages[stage]) {
      if (means[stage] > 0) ratios[rank] = sum / static_cast<double>(stages.size()) / means[stage];
    }
  }
  return Run([&](uint32_t i, int64_t weight_ns) {
    const graph::Edge& edge = step_.graph.edge(i);
    const bool is_scaled = edge.kind == kind && edge.owner < rank_count_ && weight_ns > 0;
    return is_scaled ? Times(weight_ns, ratios[edge.owner]) : weight_ns;
  });
}

int64_t StepSimulator::Time(const LeverPlan& plan) const {
  switch (plan.change) {
    case LeverChange::kNothing: return Run([](uint32_t, int64_t weight_ns) { return weight_ns; });
    case LeverChange::kMedianForAll: return ScaledTo(MediansOfAll(), std::vector<bool>(rank_count_, true));
    case LeverChange::kMedianForRanks: return AtMedian(plan.rank_indices);
    case LeverChange::kTransferFaster: return Transfers(plan.speedup);
    case LeverChange::kOverlap: return std::max(Transfers(0), LongestTransfers());
    case LeverChange::kNameFaster:
      return Run([&](uint32_t i, int64_t weight_ns) {
        const graph::Edge& edge = step_.graph.edge(i);
        return edge.label == plan.label && edge.kind == plan.kind ? Shorter(weight_ns, plan.speedup) : weight_ns;
      });
    case LeverChange::kNoLoading:
      return Run([&](uint32_t i, int64_t weight_ns) {
        return step_.graph.edge(i).kind == EdgeKind::kDataLoader ? std::min<int64_t>(weight_ns, 0) : weight_ns;
      });
    case LeverChange::kEvenStages: return EvenStages(plan.stages);
  }
  return 0;
}

}  // namespace lockstep::analysis
