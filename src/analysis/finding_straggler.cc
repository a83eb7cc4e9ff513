#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/analysis_result.h"
#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/finding.h"
#include "analysis/finding_context.h"
#include "analysis/interval_union.h"
#include "analysis/shortened_name.h"
#include "analysis/stragglers.h"
#include "analysis/wait_states/chain_text.h"
#include "analysis/wait_states/wait_states.h"

namespace lockstep::analysis {
namespace {

constexpr double kSpreadShareOfStep = 0.05;  // what ranks wait that nobody is named for is worth a word from here on
constexpr size_t kMaxDescribed = 3;

struct LateSet {
  std::vector<size_t> ranks;
  bool Has(size_t rank_index) const { return std::find(ranks.begin(), ranks.end(), rank_index) != ranks.end(); }
};

/// What the job gains if no rank of the set is late: from the last arrival of the others to that of the set.
int64_t JointDelay(const FindingContext& context, const LateSet& late) {
  IntervalUnion lost;
  for (const CollectiveInstance& instance : context.result().Get<Collectives>().instances) {
    if (!instance.synchronising || !instance.last_rank_index || !late.Has(*instance.last_rank_index)) continue;
    int64_t others_ns = INT64_MAX;
    int64_t last_ns = INT64_MIN;
    for (const CollectiveMember& member : instance.members) {
      last_ns = std::max(last_ns, member.arrival_ns);
      if (late.Has(member.rank_index)) continue;
      others_ns = others_ns == INT64_MAX ? member.arrival_ns : std::max(others_ns, member.arrival_ns);
    }
    lost.Add(others_ns, last_ns);
  }
  return lost.Length();
}

/// Waiting beside computation costs nothing: the job gains at most the exposed communication of the least exposed other
/// rank, per step.
int64_t LeastExposedOfOthers(const FindingContext& context, const LateSet& late) {
  int64_t least_ns = INT64_MAX;
  for (const BreakdownRow& row : context.breakdown()) {
    if (late.Has(row.rank_index)) continue;
    least_ns = std::min(least_ns, row.exposed_communication_ns / context.StepsOf(row.rank_index));
  }
  return least_ns;
}

std::string ActivityText(int32_t rank, const LateActivity& activity) {
  const std::string time = TimeText(activity.excess_ns);
  switch (activity.cause) {
    case LateCause::kDataLoading:
    case LateCause::kHost: break;
    case LateCause::kNothingRecorded:
      return fmt::format("before it arrived, rank {}'s CPU was {} longer than the others' in code that is not recorded",
                         rank, time);
    case LateCause::kDeviceCompute:
      return fmt::format("before it arrived, rank {}'s compute kernels ran {} longer than the others'", rank, time);
    case LateCause::kDeviceCopy:
      return fmt::format("before it arrived, rank {}'s copies and sets ran {} longer than the others'", rank, time);
    case LateCause::kDeviceIdle:
      return fmt::format("before it arrived, rank {}'s device was idle {} longer than the others'", rank, time);
  }
  return fmt::format("before it arrived, rank {} spent {} more than the others in {}", rank, time,
                     ShortenedName(activity.name));
}

void Describe(const FindingContext& context, const StragglerRow& row, Finding* finding) {
  const int32_t rank = context.RankOf(row.rank_index);
  if (row.last_count == 0) {
    AddEvidence(finding, "wait_ns", row.wait_ns,
                "rank {} comes late as well, just before the last: it would hold the others up if "
                "the ranks before it in this list came in time",
                rank);
    return;
  }
  AddEvidence(finding, "wait_given_ns", row.wait_given_ns,
              "the other ranks waited {} in all for rank {}, last to arrive in {} of {} collectives; it waited {}",
              TimeText(row.wait_given_ns), rank, row.last_count, row.collective_count,
              row.wait_ns > 0 ? TimeText(row.wait_ns) + " itself" : "for nobody");
  if (row.step_count >= 2) {
    AddEvidence(finding, "late_step_count", row.late_step_count, "rank {} delayed {} of {} steps most: {}", rank,
                row.late_step_count, row.step_count, row.chronic ? "chronic" : "not in most steps");
  }
  // An idle device is what the host's delay looks like from the other side: it comes after the causes.
  for (const bool effects : {false, true}) {
    for (const LateActivity& activity : row.activities) {
      if ((activity.cause == LateCause::kDeviceIdle) != effects) continue;
      finding->evidence.push_back({"excess_ns", static_cast<double>(activity.excess_ns), ActivityText(rank, activity)});
    }
  }
  if (!row.worst_instance || *row.worst_instance >= context.result().Get<Collectives>().instances.size()) return;
  const CollectiveInstance& worst = context.result().Get<Collectives>().instances[*row.worst_instance];
  int64_t longest_ns = 0;
  for (const CollectiveMember& member : worst.members) longest_ns = std::max(longest_ns, member.wait_ns.value_or(0));
  const std::string transfer =
      worst.transfer_ns ? fmt::format(" for a transfer of {}", TimeText(*worst.transfer_ns)) : "";
  AddEvidence(finding, "worst_wait_ns", longest_ns, "worst: {} number {} of group {}, where a rank waited {}{}",
              worst.name, worst.sequence, worst.group, TimeText(longest_ns), transfer);
}

/// The chain that shows most of the way.
const WaitChain* LongestChain(const RootCauseRow& cause) {
  const auto longest =
      std::max_element(cause.chains.begin(), cause.chains.end(),
                       [](const WaitChain& a, const WaitChain& b) { return a.hops.size() < b.hops.size(); });
  return longest == cause.chains.end() ? nullptr : &*longest;
}

void DescribeCause(const FindingContext& context, const RootCauseRow& cause, Finding* finding) {
  const auto wait_ns = static_cast<double>(cause.direct_wait_ns + cause.propagated_wait_ns);
  AddEvidence(finding, "first_cause_wait_ns", wait_ns, "first cause of {} of all waiting: {}; {}",
              PercentText(cause.wait_ratio), CauseText(context.run(), cause), PatternText(cause));
  const WaitChain* chain = LongestChain(cause);
  if (chain == nullptr || chain->hops.size() < 2) return;
  finding->evidence.push_back({"chain_wait_ns", static_cast<double>(chain->wait_ns),
                               ChainText(context.run(), context.result().Get<Collectives>(), cause, *chain)});
}

/// What the kinds of activities do not tell apart. Empty: their own advice says it.
std::string AdviceOf(int32_t rank, const RootCauseRow& cause) {
  switch (cause.cause) {
    case RootCause::kGarbageCollection:
      return fmt::format(
          "keep the garbage collector out of rank {}'s steps: gc.freeze() after set-up, gc.disable(), and "
          "gc.collect() on all ranks in the same step",
          rank);
    case RootCause::kAllocator:
      return fmt::format(
          "rank {} goes to the device's allocator in its steps: keep memory below the limit, or set "
          "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
          rank);
    case RootCause::kCheckpoint:
      return fmt::format(
          "let rank {} write its checkpoint beside the training (torch.distributed.checkpoint.async_save), "
          "or on all ranks in shares",
          rank);
    case RootCause::kLaunchDelay:
      return fmt::format("check what else runs on rank {}'s device and host: kernels were launched and did not start",
                         rank);
    default: return {};
  }
}

void Advise(const FindingContext& context, const StragglerRow& row, std::vector<std::string>* advice) {
  const int32_t rank = context.RankOf(row.rank_index);
  const LateActivity* activity = row.MainActivity();
  const LateCause cause = activity == nullptr ? LateCause::kNothingRecorded : activity->cause;
  switch (cause) {
    case LateCause::kDataLoading:
      advice->push_back(
          fmt::format("give rank {} its data sooner: more DataLoader workers (num_workers, "
                      "persistent_workers=True), prefetch_factor, decoding ahead of time",
                      rank));
      advice->push_back("compare the storage, CPU share and sample sizes of this rank with the others'");
      break;
    case LateCause::kHost:
      advice->push_back(
          fmt::format("look at '{}' on rank {}: does only this rank do it (logging, checkpoints, metrics), or "
                      "does it do more of it?",
                      ShortenedName(activity->name), rank));
      advice->push_back(
          "check that the rank's process has its own CPU cores (taskset, numactl, OMP_NUM_THREADS) and runs at "
          "full clock");
      break;
    case LateCause::kDeviceCompute:
      advice->push_back(
          "compare the work: batch size, sequence lengths, layers or experts per rank; distribute by cost, not "
          "by count");
      advice->push_back(
          fmt::format("if the work is equal, check rank {}'s device: clocks, temperature, power limit, other "
                      "processes (nvidia-smi -q -d PERFORMANCE)",
                      rank));
      break;
    case LateCause::kDeviceCopy:
      advice->push_back("copy from pinned memory with non_blocking=True, on a stream of its own");
      advice->push_back("compare the host's PCIe link and NUMA placement with the other ranks'");
      break;
    case LateCause::kNothingRecorded:
    case LateCause::kDeviceIdle:
      advice->push_back("record with with_stack=True to see the Python code between operators");
      advice->push_back(
          "look for garbage collection (gc.freeze, gc.disable between steps), locks and other processes on the "
          "rank's cores");
      break;
  }
  advice->push_back(
      row.chronic ? "late in most steps: change what this rank does every step, or swap its device or node to tell "
                    "the machine from the work"
                  : "late in a few places only: look at the worst collective first, before changing the set-up");
}

/// The culprits of the first window that are ranks, or those that are links.
std::vector<const WaitCulprit*> CulpritsOf(const FindingContext& context, bool links) {
  const WaitStates& states = context.result().Get<WaitStates>();
  std::vector<const WaitCulprit*> culprits;
  for (const WaitCulprit& culprit : states.culprits) {
    const bool is_link = states.causes[culprit.causes.front()].cause == RootCause::kSlowLink;
    if (is_link == links && context.InFirstWindow(culprit.rank_indices.front())) culprits.push_back(&culprit);
  }
  return culprits;
}

const StragglerRow* RowOf(const FindingContext& context, size_t rank_index) {
  for (const StragglerRow& row : context.result().Get<Stragglers>().rows) {
    if (row.rank_index == rank_index) return &row;
  }
  return nullptr;
}

/// With those that are late only because they waited for it: all of them come in time when it does.
void AddWithVictims(const FindingContext& context, const WaitCulprit& culprit, LateSet* set) {
  const auto add = [&](size_t rank_index) {
    if (!set->Has(rank_index)) set->ranks.push_back(rank_index);
  };
  for (const size_t rank_index : culprit.rank_indices) add(rank_index);
  for (const size_t c : culprit.causes) {
    for (const size_t rank_index : context.result().Get<WaitStates>().causes[c].passed_on_by) add(rank_index);
  }
}

std::string ChanceText(const WaitCulprit& culprit) {
  if (culprit.chance < 1e-6) return "ranks that are alike do not differ so by chance";
  return fmt::format("in a job whose ranks are alike one would be behind as much in fewer than 1 of {} cases",
                     static_cast<int64_t>(1 / culprit.chance));
}

void FindLateRanks(const FindingContext& context, std::vector<Finding>* findings) {
  const std::vector<const WaitCulprit*> culprits = CulpritsOf(context, false);
  if (culprits.empty()) return;
  const std::vector<RootCauseRow>& causes = context.result().Get<WaitStates>().causes;
  Finding finding;
  finding.id = "straggler";
  LateSet set;
  for (const WaitCulprit* culprit : culprits) {
    finding.ranks.push_back(context.RankOf(*culprit->rank_index));
    AddWithVictims(context, *culprit, &set);
  }
  const WaitCulprit& worst = *culprits.front();
  const bool all_late = set.ranks.size() >= context.breakdown().size();  // Then arrivals do not tell what it costs.
  const int64_t delay_ns = all_late ? worst.delay_ns : JointDelay(context, set);
  finding.gain_ns_per_step =
      std::min(delay_ns / context.StepsOf(set.ranks.front()), LeastExposedOfOthers(context, set));
  finding.severity = std::max(FindingSeverity::kWarning, context.SeverityOf(finding.gain_ns_per_step));
  const StragglerRow* row = RowOf(context, *worst.rank_index);
  const LateActivity* activity = row == nullptr ? nullptr : row->MainActivity();
  finding.title = fmt::format(
      "{} {} the others up ({})", RanksText(finding.ranks), finding.ranks.size() == 1 ? "holds" : "hold",
      activity == nullptr ? CauseText(context.run(), causes[worst.causes.front()]) : ShortenedName(activity->name));
  finding.title.front() = 'R';
  for (size_t i = 0; i < culprits.size() && i < kMaxDescribed; ++i) {
    if (const StragglerRow* of = RowOf(context, *culprits[i]->rank_index)) Describe(context, *of, &finding);
    for (const size_t c : culprits[i]->causes) DescribeCause(context, causes[c], &finding);
    finding.evidence.push_back({"chance", culprits[i]->chance, ChanceText(*culprits[i])});
  }
  if (const auto [recorded, world_size] = context.recorded(); recorded < world_size) {
    AddEvidence(&finding, "recorded_rank_count", recorded,
                "told from the {} of {} ranks that have a trace; one of the others may be "
                "late as well",
                recorded, world_size);
  }
  const std::string advice = AdviceOf(finding.ranks.front(), causes[worst.causes.front()]);
  if (!advice.empty()) finding.advice.push_back(advice);
  if (row != nullptr) Advise(context, *row, &finding.advice);
  findings->push_back(std::move(finding));
}

std::string LinkText(const std::vector<int32_t>& ranks) {
  if (ranks.size() == 1) return fmt::format("The link of rank {}", ranks[0]);
  if (ranks.size() == 2) return fmt::format("The link between ranks {} and {}", ranks[0], ranks[1]);
  return "A link among " + RanksText(ranks);
}

void FindSlowLinks(const FindingContext& context, std::vector<Finding>* findings) {
  const bool alone = CulpritsOf(context, false).empty();
  for (const WaitCulprit* culprit : CulpritsOf(context, true)) {
    const RootCauseRow& cause = context.result().Get<WaitStates>().causes[culprit->causes.front()];
    Finding finding;
    finding.id = "slow_link";
    for (const size_t rank_index : culprit->rank_indices) finding.ranks.push_back(context.RankOf(rank_index));
    finding.gain_ns_per_step = cause.delay_ns / context.StepsOf(culprit->rank_indices.front());
    finding.severity = std::max(FindingSeverity::kWarning, context.SeverityOf(finding.gain_ns_per_step));
    finding.title = LinkText(finding.ranks) + " is slow";
    if (alone) finding.title += "; no rank's own work is at fault";
    DescribeCause(context, cause, &finding);
    finding.advice = {
        "compare the network of the node with the others': link speed and width, errors, the switch port (ibstat, "
        "ethtool -S, nvidia-smi nvlink -s)",
        "measure it alone: lockstep bench collectives has a matrix of links"};
    findings->push_back(std::move(finding));
  }
}

/// What the ranks wait together, on average of a step.
int64_t MeanWait(const FindingContext& context) {
  int64_t sum_ns = 0;
  int64_t count = 0;
  for (const StragglerRow& row : context.result().Get<Stragglers>().rows) {
    if (!context.InFirstWindow(row.rank_index)) continue;
    sum_ns += row.wait_ns / context.StepsOf(row.rank_index);
    ++count;
  }
  return count == 0 ? 0 : sum_ns / count;
}

/// If no rank is named: why not.
void FindOtherWaiting(const FindingContext& context, std::vector<Finding>* findings) {
  const WaitStates& states = context.result().Get<WaitStates>();
  const int64_t wait_ns = MeanWait(context);
  if (Ratio(wait_ns, context.step_ns()) < kSpreadShareOfStep) return;
  Finding finding;
  AddEvidence(&finding, "wait_ns", wait_ns, "a rank waits {} for others{} on average, {} of it", TimeText(wait_ns),
              context.per_step(), PercentText(Ratio(wait_ns, context.step_ns())));
  if (states.late_start.IsWorthAWord()) {
    finding.id = "late_start";
    finding.title = fmt::format("Ranks came up to {} apart to what they did first: why lies before the recording",
                                TimeText(states.late_start.spread_ns));
    AddEvidence(&finding, "late_start_wait_ns", states.late_start.wait_ns,
                "{} of all waiting began before the recording", PercentText(states.late_start.wait_ratio));
    finding.advice = {
        "record more steps, the first of them as warm-up (schedule(warmup=1)), so that what comes before is seen"};
  } else if (CulpritsOf(context, false).empty() && CulpritsOf(context, true).empty()) {
    finding.id = "spread_waiting";
    finding.title = "Ranks wait for each other in turn: no rank stands out";
    if (!states.causes.empty()) {
      AddEvidence(&finding, "largest_wait_ratio", states.causes.front().wait_ratio,
                  "the largest cause is behind {} of all waiting", PercentText(states.causes.front().wait_ratio));
    }
    finding.advice = {
        "even the work out over the ranks of a step: sort or bucket samples by length, larger micro-batches; fewer "
        "points at which all wait for all"};
  } else {
    return;
  }
  findings->push_back(std::move(finding));
}

}  // namespace

void FindStragglerFindings(const FindingContext& context, std::vector<Finding>* findings) {
  FindLateRanks(context, findings);
  FindSlowLinks(context, findings);
  FindOtherWaiting(context, findings);
}

}  // namespace lockstep::analysis
