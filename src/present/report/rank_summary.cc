#include "present/report/rank_summary.h"

#include <algorithm>
#include <map>

#include "analysis/stragglers.h"

namespace lockstep::report {
namespace {

using analysis::Basis;
using analysis::BreakdownRow;

void Add(const BreakdownRow& row, RankSummary* sum) {
  sum->span_ns += static_cast<double>(row.span_ns);
  sum->compute_ns += static_cast<double>(row.compute_ns);
  sum->exposed_communication_ns += static_cast<double>(row.exposed_communication_ns);
  sum->exposed_memory_ns += static_cast<double>(row.exposed_memory_ns);
  sum->idle_ns += static_cast<double>(row.idle_ns);
  sum->communication_ns += static_cast<double>(row.communication_ns);
  sum->overlapped_communication_ns += static_cast<double>(row.overlapped_communication_ns);
}

void Add(const RankSummary& row, RankSummary* sum) {
  sum->span_ns += row.span_ns;
  sum->compute_ns += row.compute_ns;
  sum->exposed_communication_ns += row.exposed_communication_ns;
  sum->exposed_memory_ns += row.exposed_memory_ns;
  sum->idle_ns += row.idle_ns;
  sum->communication_ns += row.communication_ns;
  sum->overlapped_communication_ns += row.overlapped_communication_ns;
}

void Divide(double count, RankSummary* sum) {
  sum->span_ns /= count;
  sum->compute_ns /= count;
  sum->exposed_communication_ns /= count;
  sum->exposed_memory_ns /= count;
  sum->idle_ns /= count;
  sum->communication_ns /= count;
  sum->overlapped_communication_ns /= count;
}

// Steps of every rank, for the scopes that are made of steps.
struct StepSums {
  RankSummary sum;
  size_t count = 0;
};

}  // namespace

Summary Summarise(const model::Run& run, const analysis::AnalysisResult& result, const TextOptions& options) {
  Summary summary;
  const std::vector<BreakdownRow>& steps = result.Get<analysis::Breakdown>().steps;
  summary.scope = options.step ? Scope::kOneStep : steps.empty() ? Scope::kWindow : Scope::kStepMean;

  std::map<size_t, StepSums> by_rank;
  for (const BreakdownRow& row : steps) {
    if (options.step && row.step_number != options.step) continue;
    if (row.basis == Basis::kNone) continue;
    StepSums& sums = by_rank[row.rank_index];
    sums.sum.basis = row.basis;
    Add(row, &sums.sum);
    ++sums.count;
  }
  std::vector<size_t> step_counts(run.ranks.size(), 0);
  for (const BreakdownRow& row : result.Get<analysis::Breakdown>().ranks) {
    const model::RankTrace& trace = run.ranks[row.rank_index];
    if (options.rank && trace.rank.value != *options.rank) continue;
    RankSummary line;
    if (summary.scope == Scope::kWindow) {
      line.basis = row.basis;
      Add(row, &line);
    } else if (const auto found = by_rank.find(row.rank_index); found != by_rank.end()) {
      line = found->second.sum;
      Divide(static_cast<double>(found->second.count), &line);
      step_counts[row.rank_index] = found->second.count;
    }
    line.rank_index = row.rank_index;
    summary.ranks.push_back(line);
  }

  if (summary.scope != Scope::kOneStep) {
    std::map<size_t, const analysis::StragglerRow*> stragglers;
    for (const analysis::StragglerRow& row : result.Get<analysis::Stragglers>().rows) stragglers[row.rank_index] = &row;
    for (RankSummary& line : summary.ranks) {
      const auto found = stragglers.find(line.rank_index);
      if (found == stragglers.end() || found->second->collective_count == 0) continue;
      const size_t steps_here = step_counts[line.rank_index];
      if (summary.scope == Scope::kStepMean && steps_here == 0) continue;
      const double parts = summary.scope == Scope::kStepMean ? static_cast<double>(steps_here) : 1.0;
      line.wait_ns = static_cast<double>(found->second->wait_ns) / parts;
      line.wait_given_ns = static_cast<double>(found->second->wait_given_ns) / parts;
      if (*line.wait_given_ns > 0) summary.by_wait_given = true;
    }
  }
  std::stable_sort(summary.ranks.begin(), summary.ranks.end(), [&](const RankSummary& a, const RankSummary& b) {
    if (summary.by_wait_given) return a.wait_given_ns.value_or(-1) > b.wait_given_ns.value_or(-1);
    return a.span_ns > b.span_ns;
  });

  double waits = 0;
  size_t wait_count = 0;
  for (const RankSummary& line : summary.ranks) {
    if (line.basis == Basis::kNone) continue;
    if (summary.known_count == 0) summary.mean.basis = line.basis;
    Add(line, &summary.mean);
    ++summary.known_count;
    if (line.wait_ns) {
      waits += *line.wait_ns;
      ++wait_count;
    }
  }
  if (wait_count > 0) summary.mean.wait_ns = waits / static_cast<double>(wait_count);
  if (summary.known_count > 0) Divide(static_cast<double>(summary.known_count), &summary.mean);
  return summary;
}

}  // namespace lockstep::report
