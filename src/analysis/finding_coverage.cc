#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/finding_context.h"

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
  finding.evidence.push_back({"rank_count", static_cast<double>(without.size()),
                              fmt::format("{} of {} traces hold no kernel, copy or set", without.size(),
                                          without.size() + (others_have_them ? context.breakdown().size() : 0))});
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

void FindMissingRanks(const FindingContext& context, std::vector<Finding>* findings) {
  int32_t world_size = 0;
  std::set<int32_t> present;
  for (size_t i = 0; i < context.run().ranks.size(); ++i) {
    if (!context.InFirstWindow(i)) continue;
    world_size = std::max(world_size, context.run().ranks[i].world_size.value_or(0));
    present.insert(context.run().ranks[i].rank.value);
  }
  const int64_t missing = int64_t{world_size} - static_cast<int64_t>(present.size());
  if (missing <= 0) return;
  Finding finding;
  finding.id = "missing_ranks";
  finding.severity = FindingSeverity::kInfo;
  finding.title = fmt::format("{} of {} ranks {} no trace here", missing, world_size, missing == 1 ? "has" : "have");
  const auto complete =
      std::count_if(context.result().collectives.instances.begin(), context.result().collectives.instances.end(),
                    [](const CollectiveInstance& instance) { return instance.complete; });
  finding.evidence.push_back(
      {"missing_rank_count", static_cast<double>(missing),
       fmt::format("{} of {} collectives have all their members; in the others waiting cannot be told "
                   "from transfer",
                   complete, context.result().collectives.instances.size())});
  finding.advice = {
      "analyse the folder with every rank's trace: a straggler shows only beside the ranks that wait for it"};
  findings->push_back(std::move(finding));
}

}  // namespace

void FindCoverageFindings(const FindingContext& context, std::vector<Finding>* findings) {
  FindRanksWithoutDevice(context, findings);
  FindMissingRanks(context, findings);
}

}  // namespace lockstep::analysis
