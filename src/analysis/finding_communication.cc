#include <fmt/format.h>

#include <algorithm>

#include "analysis/breakdown.h"
#include "analysis/finding.h"
#include "analysis/finding_context.h"
#include "analysis/stragglers.h"

namespace lockstep::analysis {
namespace {

constexpr double kMinimumShareOfSpan = 0.01;  // communication that is less of the time is not worth words
constexpr double kCommunicationHeavyRatio = 0.10;
constexpr double kLowOverlapRatio = 0.50;

/// A rank's own waiting for late ranks in complete collectives; absent where waiting could not be told.
std::optional<int64_t> WaitOf(const FindingContext& context, size_t rank_index) {
  for (const StragglerRow& row : context.result().Get<Stragglers>().rows) {
    if (row.rank_index == rank_index && row.collective_count > 0) return row.wait_ns;
  }
  return std::nullopt;
}

void SortWorstFirst(std::vector<const BreakdownRow*>* rows) {
  std::stable_sort(rows->begin(), rows->end(), [](const BreakdownRow* a, const BreakdownRow* b) {
    return a->exposed_communication_ns > b->exposed_communication_ns;
  });
}

void FindExposed(const FindingContext& context, std::vector<Finding>* findings) {
  std::vector<const BreakdownRow*> over;
  for (const BreakdownRow& row : context.breakdown()) {
    const double threshold_ns = context.options().communication_ratio_threshold * static_cast<double>(row.compute_ns);
    if (static_cast<double>(row.exposed_communication_ns) > threshold_ns &&
        Ratio(row.exposed_communication_ns, row.span_ns) >= kMinimumShareOfSpan) {
      over.push_back(&row);
    }
  }
  if (over.empty()) return;
  SortWorstFirst(&over);
  Finding finding;
  finding.id = "exposed_communication";
  for (const BreakdownRow* row : over) finding.ranks.push_back(context.RankOf(row->rank_index));

  // All ranks step together, so hiding communication saves no more than what the least exposed rank has of it.
  int64_t least_ns = INT64_MAX;
  int64_t sum_ns = 0;
  for (const BreakdownRow& row : context.breakdown()) {
    const int64_t per_step_ns = row.exposed_communication_ns / context.StepsOf(row.rank_index);
    least_ns = std::min(least_ns, per_step_ns);
    sum_ns += per_step_ns;
  }
  const int64_t mean_ns = sum_ns / static_cast<int64_t>(context.breakdown().size());
  finding.gain_ns_per_step = least_ns;
  finding.severity = std::max(FindingSeverity::kWarning, context.SeverityOf(finding.gain_ns_per_step));
  finding.title = "Communication is not hidden behind computation";
  AddEvidence(&finding, "mean_exposed_communication_ns", mean_ns,
              "ranks spend {}{} on average in communication with no computation beside it, {} of it", TimeText(mean_ns),
              context.per_step(), PercentText(Ratio(mean_ns, context.step_ns())));
  const BreakdownRow& worst = *over.front();
  AddEvidence(&finding, "exposed_communication_ns", worst.exposed_communication_ns,
              "rank {}: {} exposed of {} communication, beside {} of computation", context.RankOf(worst.rank_index),
              TimeText(worst.exposed_communication_ns), TimeText(worst.communication_ns), TimeText(worst.compute_ns));
  if (const auto wait_ns = WaitOf(context, worst.rank_index)) {
    AddEvidence(&finding, "wait_ns", *wait_ns,
                "{} of rank {}'s communication is waiting for ranks that come late, not transfer", TimeText(*wait_ns),
                context.RankOf(worst.rank_index));
  } else {
    finding.evidence.push_back({"wait_ns", 0, "waiting and transfer cannot be told apart without all ranks' traces"});
  }
  finding.advice = {
      "where the straggler finding names a rank, fix that first: its lateness shows here as other ranks' communication",
      "let gradients go while the backward pass runs: DDP bucket_cap_mb and gradient_as_bucket_view, FSDP "
      "backward_prefetch "
      "and limit_all_gathers",
      "send less: bf16 gradients (DDP comm hooks), no_sync() while accumulating, larger batches per rank, sharding "
      "within a node"};
  findings->push_back(std::move(finding));
}

void FindLowOverlap(const FindingContext& context, std::vector<Finding>* findings) {
  std::vector<const BreakdownRow*> low;
  int64_t communication_ns = 0;
  int64_t overlapped_ns = 0;
  for (const BreakdownRow& row : context.breakdown()) {
    communication_ns += row.communication_ns;
    overlapped_ns += row.overlapped_communication_ns;
    const auto ratio = row.communication_overlap_ratio();
    if (ratio && *ratio < kLowOverlapRatio && Ratio(row.communication_ns, row.span_ns) >= kCommunicationHeavyRatio) {
      low.push_back(&row);
    }
  }
  if (low.empty()) return;
  SortWorstFirst(&low);
  Finding finding;
  finding.id = "low_overlap";
  finding.severity = FindingSeverity::kInfo;  // what it costs is in exposed_communication
  for (const BreakdownRow* row : low) finding.ranks.push_back(context.RankOf(row->rank_index));
  const double ratio = Ratio(overlapped_ns, communication_ns);
  finding.title = fmt::format("Only {} of the communication runs beside computation", PercentText(ratio));
  AddEvidence(&finding, "communication_overlap_ratio", ratio,
              "{} of {} of communication overlaps with computation, over all ranks", TimeText(overlapped_ns),
              TimeText(communication_ns));
  finding.advice = {
      "start collectives earlier: smaller first buckets, communication on a stream of its own, prefetch of the "
      "next layer's weights",
      "waiting for late ranks counts as communication that is not overlapped: see the straggler finding first"};
  findings->push_back(std::move(finding));
}

}  // namespace

void FindCommunicationFindings(const FindingContext& context, std::vector<Finding>* findings) {
  if (context.breakdown().empty() || !context.knows_compute()) return;
  FindExposed(context, findings);
  FindLowOverlap(context, findings);
}

}  // namespace lockstep::analysis
