#include "analysis/comparison/run_profile.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/analysis_result.h"
#include "analysis/breakdown.h"
#include "analysis/memory.h"
#include "analysis/rank_context.h"

namespace lockstep::comparison {
namespace {

using analysis::BreakdownRow;
using StepKey = std::pair<int32_t, int64_t>;  // window, number

std::array<int64_t, kPartCount> PartsOf(const BreakdownRow& row) {
  return {row.span_ns, row.compute_ns, row.exposed_communication_ns, row.exposed_memory_ns, row.idle_ns};
}

/// Rows by step and rank; those of ranks that have nothing to say are left out.
using RowsByStep = std::map<StepKey, std::map<int32_t, const BreakdownRow*>>;

RowsByStep CollectRows(const model::Run& run, const analysis::AnalysisResult& result, RunProfile* profile) {
  const auto& whole = result.Get<analysis::Breakdown>().ranks;
  const bool on_device = std::any_of(whole.begin(), whole.end(),
                                     [](const BreakdownRow& row) { return row.basis == analysis::Basis::kDevice; });
  profile->basis = on_device ? analysis::Basis::kDevice : analysis::Basis::kCpu;
  profile->has_steps = !result.Get<analysis::Breakdown>().steps.empty();
  RowsByStep rows;
  for (const BreakdownRow& row : profile->has_steps ? result.Get<analysis::Breakdown>().steps : whole) {
    if (row.basis != profile->basis || row.span_ns <= 0) continue;
    const model::RankTrace& trace = run.ranks[row.rank_index];
    rows[{trace.window, row.step_number.value_or(0)}][trace.rank.value] = &row;
  }
  if (rows.empty()) profile->basis = analysis::Basis::kNone;
  return rows;
}

/// Leaves out steps that a rank lacks which has at least half of the window's: the job's step is that of all ranks.
void KeepCommonSteps(RowsByStep* rows) {
  std::map<StepKey, size_t> steps_of;  // (window, rank) -> steps
  std::map<int32_t, size_t> most;      // by window
  for (const auto& [key, ranks] : *rows) {
    for (const auto& entry : ranks) {
      const size_t count = ++steps_of[{key.first, entry.first}];
      most[key.first] = std::max(most[key.first], count);
    }
  }
  RowsByStep kept = *rows;
  for (const auto& [key, ranks] : *rows) {
    for (const auto& [who, count] : steps_of) {
      if (who.first == key.first && count * 2 >= most[key.first] && !ranks.contains(static_cast<int32_t>(who.second))) {
        kept.erase(key);
        break;
      }
    }
  }
  if (!kept.empty()) *rows = std::move(kept);
}

void SelectSteps(const ProfileOptions& options, RowsByStep* rows, RunProfile* profile) {
  if (options.first_step || options.last_step) {
    std::erase_if(*rows, [&](const auto& entry) {
      const int64_t number = entry.first.second;
      return number < options.first_step.value_or(number) || number > options.last_step.value_or(number);
    });
    return;
  }
  std::map<int32_t, int64_t> count;
  for (const auto& entry : *rows) ++count[entry.first.first];
  std::map<int32_t, int64_t> seen;
  std::erase_if(*rows, [&](const auto& entry) {
    const int32_t window = entry.first.first;
    const bool skip = count[window] >= 3 && seen[window]++ < std::min(options.skip_steps, count[window] - 2);
    profile->skipped_steps += skip ? 1 : 0;
    return skip;
  });
}

void FillSeries(const RowsByStep& rows, RunProfile* profile) {
  std::map<int32_t, RankProfile> ranks;
  for (const auto& [key, row_of] : rows) {
    profile->steps.push_back(key);
    int64_t longest_ns = 0;
    int32_t slowest = 0;
    std::array<double, kPartCount> sums = {};
    for (const auto& [rank, row] : row_of) {
      RankProfile& series = ranks[rank];
      series.rank = rank;
      const auto parts = PartsOf(*row);
      for (size_t p = 0; p < kPartCount; ++p) {
        series.parts[p].push_back(static_cast<double>(parts[p]));
        sums[p] += static_cast<double>(parts[p]);
      }
      if (row->span_ns > longest_ns) {
        longest_ns = row->span_ns;
        slowest = rank;
      }
    }
    profile->step_ns.push_back(static_cast<double>(longest_ns));
    profile->slowest_rank.push_back(slowest);
    for (size_t p = 0; p < kPartCount; ++p) {
      profile->mean_parts[p].push_back(sums[p] / static_cast<double>(row_of.size()));
    }
  }
  for (auto& entry : ranks) profile->ranks.push_back(std::move(entry.second));
  profile->rank_count = profile->ranks.size();
}

void AddMemory(const model::Run& run, const analysis::AnalysisResult& result, RunProfile* profile) {
  std::map<std::pair<int32_t, int32_t>, MemoryProfile> rows;
  const auto larger = [](std::optional<int64_t> x, std::optional<int64_t> y) {
    return x && y ? std::max(x, y) : x ? x : y;
  };
  for (const analysis::MemoryRow& row : result.Get<analysis::Memory>().rows) {
    if (!row.peak_allocated_bytes && !row.peak_reserved_bytes) continue;
    const int32_t rank = run.ranks[row.rank_index].rank.value;
    MemoryProfile& profile_row = rows[{rank, row.device}];
    profile_row.rank = rank;
    profile_row.device = row.device;
    profile_row.peak_allocated_bytes = larger(profile_row.peak_allocated_bytes, row.peak_allocated_bytes);
    profile_row.peak_reserved_bytes = larger(profile_row.peak_reserved_bytes, row.peak_reserved_bytes);
  }
  for (const auto& entry : rows) profile->memory.push_back(entry.second);
}

void AddFacts(const model::Run& run, RunProfile* profile) {
  std::set<int32_t> ranks;
  for (const model::RankTrace& trace : run.ranks) {
    ranks.insert(trace.rank.value);
    profile->world_size = std::max(profile->world_size, trace.world_size.value_or(0));
    for (const DeviceOrdinal ordinal : trace.DeviceOrdinals()) {
      if (!profile->device.empty()) continue;
      for (const model::Device& device : trace.devices) {
        if (device.ordinal == ordinal) profile->device = device.name;
      }
    }
  }
  profile->world_size = std::max(profile->world_size, static_cast<int32_t>(ranks.size()));
}

}  // namespace

const char* PartName(Part part) {
  static constexpr const char* kNames[] = {"step_ns", "compute_ns", "exposed_communication_ns", "exposed_memory_ns",
                                           "idle_ns"};
  return kNames[static_cast<size_t>(part)];
}

const char* PartLabel(Part part) {
  static constexpr const char* kLabels[] = {"step", "compute", "exposed communication", "exposed copies", "idle"};
  return kLabels[static_cast<size_t>(part)];
}

const char* EventClassName(EventClass kind) {
  static constexpr const char* kNames[] = {"kernel", "operator", "runtime"};
  return kNames[static_cast<size_t>(kind)];
}

RunProfile MakeRunProfile(std::string label, const model::Run& run, const analysis::AnalysisResult& result,
                          const analysis::AnalysisOptions& analysis, const ProfileOptions& options) {
  RunProfile profile;
  profile.label = std::move(label);
  AddFacts(run, &profile);
  RowsByStep rows = CollectRows(run, result, &profile);
  KeepCommonSteps(&rows);
  SelectSteps(options, &rows, &profile);
  FillSeries(rows, &profile);
  if (options.names) {
    AddNames(run, analysis, &profile);
    AddCollectives(run, result, &profile);
    AddMemory(run, result, &profile);
    profile.findings = result.findings;
  }
  profile.ledger = run.ledger.entries();
  return profile;
}

}  // namespace lockstep::comparison
