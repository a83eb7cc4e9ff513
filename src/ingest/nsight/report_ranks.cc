#include "ingest/nsight/report_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace lockstep::ingest::nsight {
namespace {

using model::Lane;
using model::Severity;
using Processes = std::vector<std::unique_ptr<ProcessEvents>>;

/// Moves what `wanted` says to the front; returns how many.
size_t Choose(const std::function<bool(const ProcessEvents&)>& wanted, Processes* processes) {
  const auto end = std::stable_partition(processes->begin(), processes->end(),
                                         [&](const auto& process) { return wanted(*process); });
  return static_cast<size_t>(end - processes->begin());
}

/// Device events of a table without processes belong to the only process that called, or are told apart by device.
void PlaceOwnerless(bool knows_processes, Processes* processes, ReportNotes* notes) {
  const auto ownerless = std::find_if(processes->begin(), processes->end(),
                                      [](const auto& process) { return process->global_pid() == 0; });
  if (knows_processes || ownerless == processes->end()) return;
  const auto calls = [](const std::unique_ptr<ProcessEvents>& process) {
    return process->global_pid() != 0 && process->EventCount(Lane::kRuntime) > 0;
  };
  if (std::count_if(processes->begin(), processes->end(), calls) == 1) {
    const auto owner = std::find_if(processes->begin(), processes->end(), calls);
    (*owner)->Absorb(std::move(**ownerless));
    processes->erase(ownerless);
    return;
  }
  Processes parts = (*ownerless)->SplitByDevice();
  if (parts.empty()) return;
  notes->Add("nsys_rank_guess", Severity::kWarning,
             "the export does not contain the process of its kernels: each device was taken for a rank",
             "export it again with all columns", parts.size() + 1);
  for (auto& part : parts) processes->push_back(std::move(part));
}

struct Named {
  std::optional<int32_t> rank;
  std::optional<int32_t> world_size;
  std::string by;
};

/// MPI's own number first: nothing comes between it and the job.
Named NameProcess(const ReportFacts& facts, const ReportEvents& events, const ProcessEvents& process, bool is_only,
                  ReportNotes* notes) {
  std::vector<Named> answers;
  if (const auto own = facts.launches.find(process.global_pid()); own != facts.launches.end()) {
    answers.push_back({own->second.rank, own->second.world_size, own->second.variable + " of its environment"});
  } else if (is_only && facts.launch.rank) {
    answers.push_back({facts.launch.rank, facts.launch.world_size, facts.launch.variable + " of its environment"});
  }
  if (const auto found = events.mpi_ranks().find(process.global_pid()); found != events.mpi_ranks().end()) {
    answers.push_back({found->second, events.mpi_world(), "MPI"});
  }
  const auto [begin, end] = events.nccl_ranks().equal_range(process.global_pid());
  const auto widest = std::max_element(begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (widest != end) answers.push_back({widest->second.second, widest->second.first, "NCCL's largest communicator"});
  if (answers.empty()) return {};
  for (size_t i = 1; i < answers.size(); ++i) {
    if (answers[i].rank == answers[0].rank) continue;
    notes->Add("rank_disagreement", Severity::kWarning,
               fmt::format("{} says rank {}, {} says rank {}: the first was taken", answers[0].by, *answers[0].rank,
                           answers[i].by, *answers[i].rank),
               "check which launcher numbered the job");
  }
  for (const Named& answer : answers) {
    if (!answers[0].world_size) answers[0].world_size = answer.world_size;
  }
  return answers[0];
}

}  // namespace

std::vector<ReportRank> FindRanks(const ReportFacts& facts, ReportEvents* events, ReportNotes* notes) {
  Processes processes;
  for (auto& [pid, process] : events->processes()) {
    if (process->event_count() > 0) processes.push_back(std::move(process));
  }
  events->processes().clear();
  PlaceOwnerless(events->knows_processes(), &processes, notes);
  size_t count = Choose(
      [&](const ProcessEvents& process) {
        return process.EventCount(Lane::kDevice) > 0 || events->mpi_ranks().contains(process.global_pid());
      },
      &processes);
  for (const Lane lane : {Lane::kOperators, Lane::kRuntime}) {
    if (count == 0) count = Choose([&](const ProcessEvents& p) { return p.EventCount(lane) > 0; }, &processes);
  }
  if (count == 0) count = std::min<size_t>(processes.size(), 1);

  std::vector<ReportRank> ranks;
  uint64_t left_out = 0;
  for (size_t i = 0; i < processes.size(); ++i) {
    if (i < count) {
      const Named named = NameProcess(facts, *events, *processes[i], count == 1, notes);
      ranks.push_back({std::move(processes[i]), named.rank, named.world_size});
    } else if (count == 1) {
      ranks.front().events->Absorb(std::move(*processes[i]));
    } else {
      left_out += processes[i]->event_count();
    }
  }
  if (left_out > 0) {
    notes->Add("nsys_other_processes", Severity::kInfo,
               "events of processes that are not rank (launchers, data loaders) were left out", "", left_out);
  }
  if (ranks.size() < 2) return ranks;
  std::set<int32_t> seen;
  const bool known = std::all_of(ranks.begin(), ranks.end(),
                                 [&](const ReportRank& rank) { return rank.rank && seen.insert(*rank.rank).second; });
  if (known) {
    std::sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return *a.rank < *b.rank; });
    return ranks;
  }
  std::sort(ranks.begin(), ranks.end(), [](const ReportRank& a, const ReportRank& b) {
    return std::tuple(a.events->FirstDevice(), a.events->global_pid()) <
           std::tuple(b.events->FirstDevice(), b.events->global_pid());
  });
  for (ReportRank& rank : ranks) rank.rank.reset();
  notes->Add("nsys_rank_guess", Severity::kWarning,
             fmt::format("the report has {} processes of the job and the rank of none: they were numbered by device, "
                         "then by process id, which is a guess",
                         ranks.size()),
             "start nsys once per rank, behind the launcher, to record ranks", ranks.size());
  return ranks;
}

}  // namespace lockstep::ingest::nsight
