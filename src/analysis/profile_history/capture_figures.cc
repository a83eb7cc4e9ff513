#include "analysis/profile_history/capture_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/breakdown.h"
#include "analysis/comparison/statistics.h"
#include "analysis/finding.h"

namespace lockstep::profile_history {
namespace {

using comparison::Median;
using comparison::Part;
using comparison::RankProfile;
using comparison::RunProfile;
using comparison::Series;

constexpr double kLeastShare = 0.01;  // Of the step: a kernel or collective of less is not followed.
constexpr size_t kMostKernels = 20;
constexpr size_t kMostCollectives = 10;

/// A rank's own time: its step less what it only waits or communicates.
double OwnOf(const RankProfile& rank) {
  const Series& step = rank.parts[static_cast<size_t>(Part::kStep)];
  const Series& exposed = rank.parts[static_cast<size_t>(Part::kExposedCommunication)];
  Series own;
  own.reserve(step.size());
  for (size_t i = 0; i < step.size(); ++i) own.push_back(step[i] - exposed[i]);
  return Median(std::move(own));
}

void AddOwnTimes(const RunProfile& profile, double per_step, CaptureRecord* record) {
  for (const RankProfile& rank : profile.ranks) {
    record->own_ns.emplace_back(rank.rank, std::llround(OwnOf(rank) / per_step));
  }
  if (record->own_ns.size() < 2) return;
  const auto slowest = std::max_element(record->own_ns.begin(), record->own_ns.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  // Against the others: of two ranks the median of both would be half the slow one's.
  std::vector<double> others;
  for (auto each = record->own_ns.begin(); each != record->own_ns.end(); ++each) {
    if (each != slowest) others.push_back(static_cast<double>(each->second));
  }
  const double usual = Median(std::move(others));
  if (usual <= 0) return;
  record->figures.push_back({.name = "own_time_ratio",
                             .unit = "ratio",
                             .value = static_cast<double>(slowest->second) / usual,
                             .whole = 0,
                             .rank = slowest->first});
}

void AddMemory(const RunProfile& profile, CaptureRecord* record) {
  Figure figure{.name = "memory_peak", .unit = "bytes"};
  for (const comparison::MemoryProfile& memory : profile.memory) {
    if (memory.device < 0) continue;  // The host's allocator says nothing of what runs out.
    const auto peak = memory.peak_reserved_bytes ? memory.peak_reserved_bytes : memory.peak_allocated_bytes;
    if (!peak || static_cast<double>(*peak) <= figure.value) continue;
    figure.value = static_cast<double>(*peak);
    figure.rank = memory.rank;
  }
  if (figure.value > 0) record->figures.push_back(std::move(figure));
}

/// The largest of them by time, each at least kLeastShare of the step.
void AddLargest(std::vector<std::pair<double, Figure>> figures, double step, size_t most, CaptureRecord* record) {
  std::erase_if(figures, [&](const auto& each) { return each.first < kLeastShare * step; });
  std::sort(figures.begin(), figures.end(), [](const auto& a, const auto& b) {
    return std::pair(-a.first, a.second.name) < std::pair(-b.first, b.second.name);
  });
  if (figures.size() > most) figures.resize(most);
  for (auto& each : figures) record->figures.push_back(std::move(each.second));
}

void AddKernels(const RunProfile& profile, double per_step, double step, CaptureRecord* record) {
  if (profile.rank_count == 0) return;
  std::map<std::string, double> times;  // Names that are one when cut to what is kept count together.
  for (const comparison::NameProfile& name : profile.names) {
    if (name.kind != comparison::EventClass::kKernel) continue;
    const std::vector<double> steps(name.step_ns.begin(), name.step_ns.end());
    times[("kernel:" + name.name).substr(0, kMostNameBytes)] +=
        Median(steps) / static_cast<double>(profile.rank_count) / per_step;
  }
  std::vector<std::pair<double, Figure>> figures;
  for (const auto& [name, time] : times) {
    figures.push_back({time, {.name = name, .unit = "ns", .value = time, .whole = step}});
  }
  AddLargest(std::move(figures), step, kMostKernels, record);
}

void AddBandwidths(const RunProfile& profile, double per_step, double step, CaptureRecord* record) {
  std::vector<std::pair<double, Figure>> figures;
  for (const comparison::CollectiveProfile& collective : profile.collectives) {
    if (collective.timed_count == 0 || collective.busbw_bytes_per_s.empty() || !collective.bytes) continue;
    figures.push_back({Median(collective.step_transfer_ns) / per_step,
                       {.name = fmt::format("busbw:{} {}", collective.name, *collective.bytes),
                        .unit = "bytes_per_s",
                        .value = Median(collective.busbw_bytes_per_s)}});
  }
  AddLargest(std::move(figures), step, kMostCollectives, record);
}

}  // namespace

void FillFigures(const RunProfile& profile, int64_t optimizer_step_count, CaptureRecord* record) {
  record->world_size = profile.world_size;
  record->findings = profile.findings;
  for (analysis::Finding& finding : record->findings) {
    finding.evidence.clear();
    finding.advice.clear();
  }
  if (profile.step_ns.empty() || profile.basis == analysis::Basis::kNone) return;
  const double step = Median(profile.step_ns);
  if (step <= 0) return;
  const bool counts_steps = profile.has_steps || optimizer_step_count > 0;
  const double per_step = profile.has_steps ? 1 : static_cast<double>(std::max<int64_t>(optimizer_step_count, 1));
  record->step_count = profile.has_steps ? static_cast<int64_t>(profile.steps.size()) : optimizer_step_count;
  if (counts_steps) record->figures.push_back({.name = "step", .unit = "ns", .value = step / per_step});
  constexpr std::pair<Part, const char*> kParts[] = {{Part::kCompute, "compute"},
                                                     {Part::kExposedCommunication, "exposed_communication"},
                                                     {Part::kExposedMemory, "exposed_copies"},
                                                     {Part::kIdle, "idle"}};
  for (const auto& [part, name] : kParts) {
    const double value = Median(profile.mean_parts[static_cast<size_t>(part)]);
    if (counts_steps) {
      record->figures.push_back({.name = name, .unit = "ns", .value = value / per_step, .whole = step / per_step});
    } else {
      record->figures.push_back({.name = name, .unit = "ratio", .value = value / step, .whole = 1});
    }
  }
  AddOwnTimes(profile, per_step, record);
  AddMemory(profile, record);
  // If the steps of a window are not counted, a kernel's time depends on the window's length as much as on the kernel.
  if (!counts_steps) return;
  AddKernels(profile, per_step, step / per_step, record);
  AddBandwidths(profile, per_step, step / per_step, record);
}

}  // namespace lockstep::profile_history
