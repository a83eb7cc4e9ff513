#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/collectives.h"
#include "analysis/finding.h"
#include "analysis/finding_context.h"
#include "analysis/parts_in_time.h"

namespace lockstep::analysis {
namespace {

/// What is said here limits what the other findings can know.
void FindRanksWithoutDevice(const FindingContext& context, std::vector<Finding>* findings) {
  std::vector<int32_t> without;
  bool others_have_them = false;
  bool expected = false;
  for (size_t i = 0; i < context.run().ranks.size(); ++i) {
    if (!context.InFirstWindow(i)) continue;
    const model::RankTrace& trace = context.run().ranks[i];
    if (trace.HasDeviceEvents()) {
      others_have_them = true;
      continue;
    }
    without.push_back(trace.rank.value);
    expected = expected || trace.backend.find("nccl") != std::string::npos;
  }
  if (without.empty()) return;
  Finding finding;
  finding.id = "no_device_events";
  const bool is_gap = others_have_them || expected;
  finding.severity = is_gap ? FindingSeverity::kWarning : FindingSeverity::kInfo;
  if (is_gap) finding.ranks = without;
  finding.title = is_gap ? fmt::format("No device events from {}", RanksText(without))
                         : "No device events: the figures are about the CPU's work";
  AddEvidence(&finding, "rank_count", without.size(), "{} of {} traces hold no kernel, copy or set", without.size(),
              without.size() + (others_have_them ? context.breakdown().size() : 0));
  if (is_gap) {
    finding.advice = {
        "record with ProfilerActivity.CUDA; another profiler on the device (nsys, ncu, DCGM) keeps it from recording",
        "a driver or CUPTI version that does not fit also leaves the device side empty: look for CUPTI errors in "
        "the rank's log"};
  } else {
    finding.advice = {"if the job uses devices, record with ProfilerActivity.CUDA as well"};
  }
  findings->push_back(std::move(finding));
}

/// Files of several jobs in one folder.
void FindPartsInTime(const FindingContext& context, std::vector<Finding>* findings) {
  const model::Run& run = context.run();
  size_t count = 0;
  while (count < run.ranks.size() && context.InFirstWindow(count)) ++count;
  const std::vector<std::vector<size_t>> parts = PartsInTime(run, 0, count);
  if (parts.size() < 2) return;
  constexpr size_t kMostNamed = 8;
  Finding finding;
  finding.id = "not_one_job";
  finding.severity = FindingSeverity::kCritical;
  finding.is_premise = true;
  finding.title = fmt::format("{} traces lie in {} parts that do not overlap in time: they are probably not of one job",
                              count, parts.size());
  AddEvidence(&finding, "part_count", parts.size(), "no collective joins one part to another");
  for (size_t p = 0; p < parts.size() && p < kMostNamed; ++p) {
    const model::RankTrace& trace = run.ranks[parts[p].front()];
    AddEvidence(&finding, "part_trace_count", parts[p].size(), "part {}: {} of {}{}", p + 1,
                TimeText(*trace.last_ns - *trace.first_ns), trace.source,
                parts[p].size() > 1 ? fmt::format(" and {} more", parts[p].size() - 1) : "");
  }
  finding.advice = {fmt::format("analyse each by itself: lockstep analyze {}", run.ranks[parts[0].front()].source),
                    "if they are of one job, record its ranks at the same time: lockstep capture"};
  findings->push_back(std::move(finding));
}

/// How long those that were recorded wait for those that were not.
void DescribeUnrecordedWaits(const FindingContext& context, Finding* finding) {
  std::map<size_t, int64_t> waits;  // by rank index
  size_t count = 0;
  size_t last_count = 0;
  for (const CollectiveInstance& instance : context.result().Get<Collectives>().instances) {
    if (!instance.some_unrecorded) continue;
    ++count;
    if (instance.unrecorded_wait_ns > 0) ++last_count;
    for (const CollectiveMember& member : instance.members) waits[member.rank_index] += instance.unrecorded_wait_ns;
  }
  if (last_count == 0) return;
  const auto longest =
      std::max_element(waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const int64_t wait_ns = longest->second / context.StepsOf(longest->first);
  AddEvidence(finding, "unrecorded_wait_ns", wait_ns,
              "in {} of the {} collectives that lack a rank's trace such a rank came last; rank {} waited longest "
              "for them, {}{}",
              last_count, count, context.RankOf(longest->first), TimeText(wait_ns), context.per_step());
}

void FindMissingRanks(const FindingContext& context, std::vector<Finding>* findings) {
  const auto [recorded, world_size] = context.recorded();
  const int64_t missing = world_size - recorded;
  if (missing == 0) return;
  Finding finding;
  finding.id = "missing_ranks";
  finding.severity = FindingSeverity::kInfo;
  finding.title = fmt::format("{} of {} ranks {} no trace here", missing, world_size, missing == 1 ? "has" : "have");
  const auto complete = std::count_if(context.result().Get<Collectives>().instances.begin(),
                                      context.result().Get<Collectives>().instances.end(),
                                      [](const CollectiveInstance& instance) { return instance.complete; });
  AddEvidence(&finding, "missing_rank_count", missing,
              "{} of {} collectives have all their members; of the others waiting is told up to the last "
              "member that has a trace: at least so long",
              complete, context.result().Get<Collectives>().instances.size());
  DescribeUnrecordedWaits(context, &finding);
  finding.advice = {
      "analyse the folder with every rank's trace: only ranks that were recorded can be named, and only beside ranks "
      "that wait for them"};
  findings->push_back(std::move(finding));
}

}  // namespace

void FindCoverageFindings(const FindingContext& context, std::vector<Finding>* findings) {
  FindPartsInTime(context, findings);
  FindRanksWithoutDevice(context, findings);
  FindMissingRanks(context, findings);
}

}  // namespace lockstep::analysis
