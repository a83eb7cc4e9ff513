#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/finding.h"
#include "analysis/finding_context.h"
#include "analysis/imbalance.h"
#include "analysis/memory.h"

namespace lockstep::analysis {
namespace {

const ImbalanceRow* FindRow(const FindingContext& context, std::string_view quantity) {
  for (const ImbalanceRow& row : context.result().Get<Imbalance>().rows) {
    if (row.quantity == quantity) return &row;
  }
  return nullptr;
}

/// Traces that were put into one folder need not be of one job. They are if they share a collective, state one world
/// size, or at least name their ranks without contradiction.
bool IsOneJob(const FindingContext& context) {
  for (const CollectiveInstance& instance : context.result().Get<Collectives>().instances) {
    if (instance.members.size() > 1) return true;
  }
  std::optional<int32_t> world_size;
  for (size_t i = 0; i < context.run().ranks.size(); ++i) {
    const model::RankTrace& rank = context.run().ranks[i];
    if (!context.InFirstWindow(i)) continue;
    if (rank.rank_source == model::RankSource::kOrder) return false;
    if (rank.world_size && world_size && *rank.world_size != *world_size) return false;
    if (rank.world_size) world_size = rank.world_size;
  }
  return true;
}

void FindComputeImbalance(const FindingContext& context, std::vector<Finding>* findings) {
  const ImbalanceRow* row = FindRow(context, "compute_ns");
  if (row == nullptr || !row->ratio || *row->ratio <= context.options().imbalance_ratio_threshold) return;
  if (!context.StepCountsAgree()) return;
  Finding finding;
  finding.id = "imbalance";
  const double line = row->mean * (1 + context.options().imbalance_ratio_threshold);
  std::vector<std::pair<int64_t, size_t>> over;
  for (const BreakdownRow& rank : context.breakdown()) {
    if (static_cast<double>(rank.compute_ns) > line) over.emplace_back(rank.compute_ns, rank.rank_index);
  }
  std::stable_sort(over.begin(), over.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [compute_ns, rank_index] : over) finding.ranks.push_back(context.RankOf(rank_index));
  finding.gain_ns_per_step = static_cast<int64_t>(row->max - row->mean) / context.StepsOf(row->max_rank_index);
  finding.severity = context.SeverityOf(finding.gain_ns_per_step);
  finding.title = fmt::format("Computation is uneven: rank {} computes {} more than the mean",
                              context.RankOf(row->max_rank_index), PercentText(*row->ratio));
  AddEvidence(&finding, "compute_imbalance_ratio", *row->ratio, "computation: rank {} {}, mean {}, rank {} {}",
              context.RankOf(row->max_rank_index), TimeText(static_cast<int64_t>(row->max)),
              TimeText(static_cast<int64_t>(row->mean)), context.RankOf(row->min_rank_index),
              TimeText(static_cast<int64_t>(row->min)));
  finding.advice = {
      "give every rank the same work: sort or bucket samples by length, balance layers, experts or embedding tables "
      "by measured time",
      "compare the kernels of the two ranks (--section kernels --rank N): more calls mean more work, longer calls a "
      "slower device"};
  findings->push_back(std::move(finding));
}

void FindMemoryImbalance(const FindingContext& context, std::vector<Finding>* findings) {
  const ImbalanceRow* worst = nullptr;
  for (const char* quantity : {"peak_allocated_bytes", "peak_reserved_bytes"}) {
    const ImbalanceRow* row = FindRow(context, quantity);
    if (row == nullptr || !row->ratio || *row->ratio <= context.options().memory_imbalance_ratio_threshold) continue;
    if (worst == nullptr || *row->ratio > *worst->ratio) worst = row;
  }
  if (worst == nullptr) return;
  Finding finding;
  finding.id = "memory_imbalance";
  finding.severity = FindingSeverity::kWarning;
  finding.ranks = {context.RankOf(worst->max_rank_index)};
  finding.title = fmt::format("Memory is uneven: rank {} peaks {} above the mean", finding.ranks.front(),
                              PercentText(*worst->ratio));
  AddEvidence(&finding, worst->quantity + "_imbalance_ratio", *worst->ratio, "{}: rank {} {}, mean {}, rank {} {}",
              worst->quantity == "peak_allocated_bytes" ? "peak allocated" : "peak reserved", finding.ranks.front(),
              BytesText(worst->max), BytesText(worst->mean), context.RankOf(worst->min_rank_index),
              BytesText(worst->min));
  finding.advice = {
      "the fullest rank limits batch size and model: shard or move what only it holds (embeddings, the last "
      "stage's logits, optimizer state)",
      "look for tensors that only this rank keeps: metrics, caches, gathered outputs"};
  findings->push_back(std::move(finding));
}

}  // namespace

void FindBalanceFindings(const FindingContext& context, std::vector<Finding>* findings) {
  if (!IsOneJob(context)) return;
  FindComputeImbalance(context, findings);
  FindMemoryImbalance(context, findings);
}

}  // namespace lockstep::analysis
