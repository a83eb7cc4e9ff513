#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/finding_context.h"
#include "analysis/interval_union.h"
#include "analysis/launch_noise.h"
#include "analysis/shortened_name.h"
#include "analysis/wait_states/chain_text.h"

namespace lockstep::analysis {
namespace {

constexpr double kMinimumShareOfStep = 0.01;
constexpr size_t kMaxDescribed = 3;

/// What a rank makes another rank wait, on average over those that waited.
double MeanGiven(const StragglerRow& row) {
  return static_cast<double>(row.wait_given_ns) / static_cast<double>(std::max<size_t>(row.waiting_rank_count, 1));
}

/// A rank counts as late if what it makes another rank wait matters and is not small beside what it waits itself (who
/// waits more than that is a victim that happened to be last now and then), or if the job by itself lost that much to
/// it.
bool IsLate(const FindingContext& context, const StragglerRow& row) {
  if (row.last_count == 0 || row.waiting_rank_count == 0) return false;
  const double steps = static_cast<double>(context.StepsOf(row.rank_index));
  const double floor_ns =
      std::max(static_cast<double>(kLaunchNoiseNs), kMinimumShareOfStep * static_cast<double>(context.step_ns())) *
      steps;
  if (static_cast<double>(row.delay_ns) >= floor_ns) return true;
  return MeanGiven(row) >= floor_ns && 2 * MeanGiven(row) >= static_cast<double>(row.wait_ns);
}

/// The late rows, worst first. Where most ranks qualify, they take turns, which is jitter: only those stay that make
/// others wait twice as long as they wait themselves.
std::vector<const StragglerRow*> LateRows(const FindingContext& context) {
  std::vector<const StragglerRow*> late;
  size_t rank_count = 0;
  for (const StragglerRow& row : context.result().stragglers.rows) {
    if (!context.InFirstWindow(row.rank_index)) continue;
    ++rank_count;
    if (IsLate(context, row)) late.push_back(&row);
  }
  if (2 * late.size() > rank_count) {
    std::erase_if(late,
                  [](const StragglerRow* row) { return MeanGiven(*row) < 2 * static_cast<double>(row->wait_ns); });
  }
  return late;
}

struct LateSet {
  std::vector<size_t> ranks;
  bool Has(size_t rank_index) const { return std::find(ranks.begin(), ranks.end(), rank_index) != ranks.end(); }
};

/// What the job gains if no rank of the set is late: from the last arrival of the others to that of the set.
int64_t JointDelay(const FindingContext& context, const LateSet& late) {
  IntervalUnion lost;
  for (const CollectiveInstance& instance : context.result().collectives.instances) {
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

/// Waiting that lies beside computation costs nothing: the job gains no more than what the least exposed of the other
/// ranks has of exposed communication, per step.
int64_t LeastExposedOfOthers(const FindingContext& context, const LateSet& late) {
  int64_t least_ns = INT64_MAX;
  for (const BreakdownRow& row : context.breakdown()) {
    if (late.Has(row.rank_index)) continue;
    least_ns = std::min(least_ns, row.exposed_communication_ns / context.StepsOf(row.rank_index));
  }
  return least_ns;
}

/// The rank that would be the straggler if those of the set came in time, and what the job would lose to it.
std::pair<size_t, int64_t> NextStraggler(const FindingContext& context, const LateSet& late) {
  std::map<size_t, IntervalUnion> lost;
  for (const CollectiveInstance& instance : context.result().collectives.instances) {
    if (!instance.synchronising || !instance.last_rank_index || !late.Has(*instance.last_rank_index)) continue;
    const CollectiveMember* last = nullptr;
    const CollectiveMember* second = nullptr;
    for (const CollectiveMember& member : instance.members) {
      if (late.Has(member.rank_index)) continue;
      if (last == nullptr || member.arrival_ns > last->arrival_ns) {
        second = last;
        last = &member;
      } else if (second == nullptr || member.arrival_ns > second->arrival_ns) {
        second = &member;
      }
    }
    if (second != nullptr) lost[last->rank_index].Add(second->arrival_ns, last->arrival_ns);
  }
  std::pair<size_t, int64_t> worst{0, 0};
  for (auto& [rank_index, time] : lost) {
    const int64_t length_ns = time.Length();
    if (length_ns > worst.second) worst = {rank_index, length_ns};
  }
  return worst;
}

/// Ranks that are late together hide each other: only the very last shows. Adds those that come to light when the late
/// ones are thought away, as long as they cost half as much as what is known, but never more than half of the ranks.
void AddHiddenStragglers(const FindingContext& context, std::vector<const StragglerRow*>* late) {
  const std::vector<StragglerRow>& rows = context.result().stragglers.rows;
  while (2 * (late->size() + 1) <= rows.size()) {
    LateSet set;
    for (const StragglerRow* row : *late) set.ranks.push_back(row->rank_index);
    const auto [rank_index, lost_ns] = NextStraggler(context, set);
    const double floor_ns = kMinimumShareOfStep * static_cast<double>(context.step_ns() * context.StepsOf(rank_index));
    if (static_cast<double>(lost_ns) < floor_ns || 2 * lost_ns < JointDelay(context, set)) return;
    const auto row = std::find_if(rows.begin(), rows.end(), [&, wanted = rank_index](const StragglerRow& candidate) {
      return candidate.rank_index == wanted;
    });
    if (row == rows.end() || !context.InFirstWindow(row->rank_index)) return;
    late->push_back(&*row);
  }
}

/// The activity that explains most; an idle device only where nothing else is known, since it is an effect.
const LateActivity* MainActivity(const StragglerRow& row) {
  for (const LateActivity& activity : row.activities) {
    if (activity.cause != LateCause::kDeviceIdle) return &activity;
  }
  return row.activities.empty() ? nullptr : &row.activities.front();
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
    finding->evidence.push_back(
        {"wait_ns", static_cast<double>(row.wait_ns),
         fmt::format("rank {} comes late as well, just before the last: it would hold the others up if "
                     "the ranks before it in this list came in time",
                     rank)});
    return;
  }
  finding->evidence.push_back(
      {"wait_given_ns", static_cast<double>(row.wait_given_ns),
       fmt::format(
           "the other ranks waited {} in all for rank {}, last to arrive in {} of {} collectives; it waited {} itself",
           TimeText(row.wait_given_ns), rank, row.last_count, row.collective_count, TimeText(row.wait_ns))});
  if (row.step_count >= 2) {
    finding->evidence.push_back({"late_step_count", static_cast<double>(row.late_step_count),
                                 fmt::format("rank {} delayed {} of {} steps most: {}", rank, row.late_step_count,
                                             row.step_count, row.chronic ? "chronic" : "not in most steps")});
  }
  // An idle device is what the host's delay looks like from the other side: it comes after the causes.
  for (const bool effects : {false, true}) {
    for (const LateActivity& activity : row.activities) {
      if ((activity.cause == LateCause::kDeviceIdle) != effects) continue;
      finding->evidence.push_back({"excess_ns", static_cast<double>(activity.excess_ns), ActivityText(rank, activity)});
    }
  }
  if (!row.worst_instance || *row.worst_instance >= context.result().collectives.instances.size()) return;
  const CollectiveInstance& worst = context.result().collectives.instances[*row.worst_instance];
  int64_t longest_ns = 0;
  for (const CollectiveMember& member : worst.members) longest_ns = std::max(longest_ns, member.wait_ns.value_or(0));
  finding->evidence.push_back(
      {"worst_wait_ns", static_cast<double>(longest_ns),
       fmt::format("worst: {} number {} of group {}, where a rank waited {} for a transfer of {}", worst.name,
                   worst.sequence, worst.group, TimeText(longest_ns), TimeText(worst.transfer_ns.value_or(0)))});
}

/// The costliest first cause that began with a rank of the set, or came to one of them through others.
const RootCauseRow* FirstCause(const FindingContext& context, const LateSet& late) {
  for (const RootCauseRow& cause : context.result().wait_states.causes) {
    if (!cause.rank_index || !context.InFirstWindow(*cause.rank_index)) continue;
    if (late.Has(*cause.rank_index)) return &cause;
    for (const WaitChain& chain : cause.chains) {
      for (const WaitHop& hop : chain.hops) {
        if (late.Has(hop.late_rank_index)) return &cause;
      }
    }
  }
  return nullptr;
}

/// Late only because it waited for another rank, as far as is known.
bool OnlyPassedItOn(const FindingContext& context, size_t rank_index) {
  bool passed_on = false;
  for (const RootCauseRow& cause : context.result().wait_states.causes) {
    if (cause.rank_index == rank_index) return false;
    for (const WaitChain& chain : cause.chains) {
      for (const WaitHop& hop : chain.hops) {
        passed_on = passed_on || (hop.late_rank_index == rank_index && &hop != &chain.hops.back());
      }
    }
  }
  return passed_on;
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
  finding->evidence.push_back({"first_cause_wait_ns", wait_ns,
                               fmt::format("first cause of {} of all waiting: {}; {}", PercentText(cause.wait_ratio),
                                           CauseText(context.run(), cause), PatternText(cause))});
  const WaitChain* chain = LongestChain(cause);
  if (chain == nullptr || chain->hops.size() < 2) return;
  finding->evidence.push_back({"chain_wait_ns", static_cast<double>(chain->wait_ns),
                               ChainText(context.run(), context.result().collectives, cause, *chain)});
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
  const LateActivity* activity = MainActivity(row);
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

}  // namespace

void FindStragglerFindings(const FindingContext& context, std::vector<Finding>* findings) {
  std::vector<const StragglerRow*> late = LateRows(context);
  if (late.empty()) return;
  AddHiddenStragglers(context, &late);
  Finding finding;
  finding.id = "straggler";
  LateSet set;
  for (const StragglerRow* row : late) set.ranks.push_back(row->rank_index);
  // Who only passed it on is not held up for it.
  const auto passed_on = std::stable_partition(
      late.begin(), late.end(), [&](const StragglerRow* row) { return !OnlyPassedItOn(context, row->rank_index); });
  if (passed_on != late.begin()) late.erase(passed_on, late.end());
  for (const StragglerRow* row : late) finding.ranks.push_back(context.RankOf(row->rank_index));
  // Who began it goes before those who passed it on.
  const RootCauseRow* cause = FirstCause(context, set);
  const bool began_elsewhere = cause != nullptr && !set.Has(*cause->rank_index);
  if (began_elsewhere) finding.ranks.insert(finding.ranks.begin(), context.RankOf(*cause->rank_index));
  finding.gain_ns_per_step =
      std::min(JointDelay(context, set) / context.StepsOf(set.ranks.front()), LeastExposedOfOthers(context, set));
  finding.severity = std::max(FindingSeverity::kWarning, context.SeverityOf(finding.gain_ns_per_step));
  finding.title =
      fmt::format("{} {} the others up", RanksText(finding.ranks), finding.ranks.size() == 1 ? "holds" : "hold");
  finding.title.front() = 'R';
  if (began_elsewhere) {
    finding.title += fmt::format(" (it began with {})", CauseText(context.run(), *cause));
  } else if (const LateActivity* activity = MainActivity(*late.front())) {
    finding.title += fmt::format(" ({})", ShortenedName(activity->name));
  }
  for (size_t i = 0; i < late.size() && i < kMaxDescribed; ++i) Describe(context, *late[i], &finding);
  if (cause != nullptr) {
    DescribeCause(context, *cause, &finding);
    const std::string advice = AdviceOf(context.RankOf(*cause->rank_index), *cause);
    if (!advice.empty()) finding.advice.push_back(advice);
  }
  Advise(context, *late.front(), &finding.advice);
  findings->push_back(std::move(finding));
}

}  // namespace lockstep::analysis
