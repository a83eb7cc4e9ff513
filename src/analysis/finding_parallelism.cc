#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/finding.h"
#include "analysis/finding_context.h"
#include "analysis/parallelism/ddp.h"
#include "analysis/parallelism/fsdp.h"
#include "analysis/parallelism/moe.h"
#include "analysis/parallelism/process_groups.h"

namespace lockstep::analysis {
namespace {

/// Buckets below this are latency-bound on any network in use: DDP's own default is 25 MiB.
constexpr int64_t kSmallBucketBytes = int64_t{4} << 20;
constexpr double kManyBuckets = 4;
/// The tail behind the backward pass that is worth a word: share of the step.
constexpr double kTailRatio = 0.02;
constexpr double kExposedGatherRatio = 0.25;
constexpr double kGatherStepRatio = 0.02;
/// Exposed all_to_alls of an uneven group that are worth a word: share of the step.
constexpr double kExchangeStepRatio = 0.02;

/// Many small buckets: each pays the latency of a collective again.
void FindSmallBuckets(const FindingContext& context, const Ddp& ddp, std::vector<Finding>* findings) {
  std::map<uint32_t, std::pair<int64_t, int64_t>> by_group;  // bytes, buckets of one pass
  for (const DdpBucketRow& row : ddp.buckets) {
    if (!row.bytes) return;
    by_group[row.group].first += *row.bytes;
    ++by_group[row.group].second;
  }
  for (const auto& [group, sums] : by_group) {
    const auto [bytes, count] = sums;
    if (static_cast<double>(count) < kManyBuckets || bytes / count >= kSmallBucketBytes) continue;
    int64_t exposed_ns = 0;
    int64_t passes = 0;
    for (const DdpRow& row : ddp.ranks) {
      if (row.group != group) continue;
      exposed_ns += row.exposed_ns;
      passes += static_cast<int64_t>(row.pass_count);
    }
    if (passes == 0 || Ratio(exposed_ns / passes, context.step_ns()) < kTailRatio) continue;
    Finding finding;
    finding.id = "small_buckets";
    finding.severity = FindingSeverity::kInfo;  // what it costs is in exposed_communication
    finding.title = fmt::format("Gradients go in {} buckets of {} on average", count,
                                BytesText(static_cast<double>(bytes) / static_cast<double>(count)));
    AddEvidence(&finding, "mean_bucket_bytes", bytes / count, "{} in {} all_reduces per backward pass",
                BytesText(static_cast<double>(bytes)), count);
    AddEvidence(&finding, "exposed_ns_per_pass", exposed_ns / passes,
                "{} of them per pass and rank with nothing computed beside them", TimeText(exposed_ns / passes));
    finding.advice = {"raise DDP's bucket_cap_mb (default 25): fewer, larger all_reduces pay the latency less often",
                      "gradients of many small parameters: gradient_as_bucket_view=True saves their copies"};
    findings->push_back(std::move(finding));
  }
}

/// A tail behind the backward pass that one bucket makes: the last bucket is large, and nothing is left to hide it.
void FindTail(const FindingContext& context, const Ddp& ddp, std::vector<Finding>* findings) {
  const DdpRow* worst = nullptr;
  const auto tail = [](const DdpRow& row) {
    return row.tail_ns ? *row.tail_ns / static_cast<int64_t>(row.pass_count) : 0;
  };
  for (const DdpRow& row : ddp.ranks) {
    if (!context.InFirstWindow(row.rank_index)) continue;
    if (worst == nullptr || tail(row) > tail(*worst)) worst = &row;
  }
  if (worst == nullptr || Ratio(tail(*worst), context.step_ns()) < kTailRatio) return;
  const DdpBucketRow* last = nullptr;
  for (const DdpBucketRow& row : ddp.buckets) {
    if (row.group == worst->group) last = &row;
  }
  Finding finding;
  finding.id = "gradient_tail";
  finding.severity = FindingSeverity::kInfo;  // what it costs is in exposed_communication
  finding.ranks = {context.RankOf(worst->rank_index)};
  finding.title = fmt::format("The optimizer waits {} for gradients after the backward pass", TimeText(tail(*worst)));
  AddEvidence(&finding, "tail_ns_per_pass", tail(*worst),
              "rank {}: {} from the end of its backward kernels to the end of the last of "
              "{:.1f} buckets, {} of a step",
              context.RankOf(worst->rank_index), TimeText(tail(*worst)), worst->buckets_per_pass,
              PercentText(Ratio(tail(*worst), context.step_ns())));
  if (last != nullptr && last->bytes) {
    AddEvidence(&finding, "last_bucket_bytes", *last->bytes,
                "the last bucket has {} and is issued when {} of the backward pass is over",
                BytesText(static_cast<double>(*last->bytes)), PercentText(last->issue_ratio));
  }
  if (worst->buckets_per_pass < 2) {
    finding.advice.emplace_back(
        "lower DDP's bucket_cap_mb: one bucket cannot be sent before the backward pass is nearly over");
  } else {
    finding.advice.emplace_back(
        "a smaller last bucket leaves less behind the backward pass: lower bucket_cap_mb, if buckets are far above the "
        "size at which the network is at its full rate");
  }
  finding.advice.emplace_back("waiting for a late rank is part of the tail: see the straggler finding first");
  findings->push_back(std::move(finding));
}

void FindExposedGathers(const FindingContext& context, const std::vector<FsdpRow>& rows,
                        std::vector<Finding>* findings) {
  if (!context.knows_compute()) return;
  const FsdpRow* worst = nullptr;
  for (const FsdpRow& row : rows) {
    if (!context.InFirstWindow(row.rank_index)) continue;
    if (worst == nullptr || row.gather_exposed_ns > worst->gather_exposed_ns) worst = &row;
  }
  if (worst == nullptr || Ratio(worst->gather_exposed_ns, worst->gather_ns) < kExposedGatherRatio) return;
  const int64_t per_step_ns = worst->gather_exposed_ns / context.StepsOf(worst->rank_index);
  if (Ratio(per_step_ns, context.step_ns()) < kGatherStepRatio) return;
  Finding finding;
  finding.id = "exposed_gathers";
  finding.severity = FindingSeverity::kInfo;  // what it costs is in exposed_communication
  finding.ranks = {context.RankOf(worst->rank_index)};
  finding.title = fmt::format("Sharded weights arrive late: {}{} of gathering with nothing computed",
                              TimeText(per_step_ns), context.per_step());
  AddEvidence(&finding, "gather_exposed_ns", worst->gather_exposed_ns, "rank {}: {} of {} in all_gathers are exposed",
              context.RankOf(worst->rank_index), TimeText(worst->gather_exposed_ns), TimeText(worst->gather_ns));
  AddEvidence(&finding, "prefetched_count", worst->prefetched_count,
              "{} of {} gathers run beside computation for half of their time or more", worst->prefetched_count,
              worst->gather_count);
  finding.advice = {
      "prefetch: FSDP backward_prefetch=BACKWARD_PRE and forward_prefetch=True; FSDP2 set_modules_to_forward_prefetch",
      "wrap in units large enough that computing one takes as long as gathering the next"};
  if (worst->resharding == Resharding::kAfterForward) {
    finding.advice.emplace_back(
        "where memory allows, keep weights after the forward pass (reshard_after_forward=False, SHARD_GRAD_OP): it "
        "saves the backward pass's gathers");
  }
  findings->push_back(std::move(finding));
}

/// Which rank of a group has most of its all_to_alls exposed: the others wait there for the one with most to do.
const MoeRankRow* MostExposed(const FindingContext& context, const Moe& moe, uint32_t group) {
  const MoeRankRow* most = nullptr;
  for (const MoeRankRow& row : moe.ranks) {
    if (row.group != group || !context.InFirstWindow(row.rank_index)) continue;
    if (most == nullptr || row.exposed_ns > most->exposed_ns) most = &row;
  }
  return most;
}

/// The group whose uneven exchanges cost most.
void FindUnevenExchange(const FindingContext& context, std::vector<Finding>* findings) {
  const Moe& moe = context.result().Get<Moe>();
  const MoeRow* worst = nullptr;
  const MoeRankRow* waits = nullptr;
  for (const MoeRow& row : moe.groups) {
    if (row.pattern == LoadPattern::kEven || row.pattern == LoadPattern::kUnknown) continue;
    const MoeRankRow* most = MostExposed(context, moe, row.group);
    if (most == nullptr || (waits != nullptr && most->exposed_ns <= waits->exposed_ns)) continue;
    worst = &row;
    waits = most;
  }
  if (worst == nullptr) return;
  const int64_t per_step_ns = waits->exposed_ns / context.StepsOf(waits->rank_index);
  if (Ratio(per_step_ns, context.step_ns()) < kExchangeStepRatio) return;
  const bool named = worst->pattern != LoadPattern::kVarying && worst->hottest_rank_index;
  const ProcessGroupRow& group = context.result().Get<ProcessGroups>().rows[worst->group];
  const bool experts = group.kind == GroupKind::kExpert;
  const std::string what = experts ? "tokens" : "bytes of its group's all_to_alls";
  Finding finding;
  finding.id = "uneven_all_to_all";
  finding.severity = FindingSeverity::kInfo;  // what it costs is in straggler and exposed_communication
  if (named) {
    finding.ranks = {context.RankOf(*worst->hottest_rank_index)};
    finding.title = fmt::format("Rank {} gets {:.2f} times the mean of the {}",
                                context.RankOf(*worst->hottest_rank_index), *worst->load_ratio, what);
  } else {
    finding.title =
        fmt::format("One rank or another gets {:.2f} times the mean of the {}", *worst->exchange_load_ratio, what);
  }
  AddEvidence(&finding, "load_ratio", *worst->load_ratio,
              "group '{}', {} ranks, {} exchanges: the largest load is {:.2f} times the mean over all of them, "
              "{:.2f} times within one",
              group.name, worst->rank_count, worst->exchange_count, *worst->load_ratio, *worst->exchange_load_ratio);
  AddEvidence(&finding, "exposed_ns", waits->exposed_ns, "rank {}: {}{} in them with nothing computed",
              context.RankOf(waits->rank_index), TimeText(per_step_ns), context.per_step());
  if (worst->pattern == LoadPattern::kOnce) {
    finding.advice.emplace_back("trace more steps: one exchange does not tell whether it is always this rank");
  } else if (named) {
    finding.advice.emplace_back(
        "experts: place those that are asked for most on different ranks, or replicate them; a load-balancing loss or "
        "bias spreads tokens while training");
  } else {
    finding.advice.emplace_back(
        "experts: cap what one expert takes of a batch (capacity factor), or route over larger batches: which rank has "
        "most changes from exchange to exchange");
  }
  finding.advice.emplace_back(
      "other uses (sharded embeddings, sequence parallelism): split rows evenly by their bytes");
  findings->push_back(std::move(finding));
}

}  // namespace

void FindParallelismFindings(const FindingContext& context, std::vector<Finding>* findings) {
  const Ddp& ddp = context.result().Get<Ddp>();
  FindSmallBuckets(context, ddp, findings);
  FindTail(context, ddp, findings);
  FindExposedGathers(context, context.result().Get<Fsdp>().rows, findings);
  FindUnevenExchange(context, findings);
}

}  // namespace lockstep::analysis
