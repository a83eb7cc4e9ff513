#include "analysis/kernel_kind.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "analysis/rank_map.h"
#include "analysis/rank_passes.h"
#include "model/kernel_name.h"

namespace lockstep::analysis {
namespace {

constexpr std::array<std::string_view, 3> kCpuBackends = {"gloo:", "mpi:", "ucc:"};

struct DeviceNamesPass {
  static constexpr std::string_view kName = "device_names";
  using Args = bool;  // Nothing to say.
  using Partial = RankDeviceNames;
  static Partial Map(const RunContext& shared, size_t rank_index, const Args& /*args*/) {
    return MapDeviceNames(shared.run->ranks[rank_index]);
  }
};

}  // namespace

const char* KernelKindName(KernelKind kind) {
  switch (kind) {
    case KernelKind::kCompute: return "compute";
    case KernelKind::kCommunication: return "communication";
    case KernelKind::kMemcpy: return "memcpy";
    case KernelKind::kMemset: return "memset";
  }
  return "unknown";
}

bool IsCpuCollectiveName(std::string_view name) {
  return std::any_of(kCpuBackends.begin(), kCpuBackends.end(),
                     [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; });
}

RankDeviceNames MapDeviceNames(const model::RankTrace& trace) {
  RankDeviceNames names;
  uint32_t low = UINT32_MAX;
  uint32_t high = 0;
  const auto for_each = [&trace](const auto& visit) {
    for (const model::Track& track : trace.tracks) {
      if (track.lane != model::Lane::kDevice) continue;
      for (const NameId name : track.events.name) visit(name.value);
    }
  };
  for_each([&](uint32_t name) {
    low = std::min(low, name);
    high = std::max(high, name);
  });
  if (low <= high) {
    std::vector<uint64_t> counts(high - low + size_t{1});  // A file's names lie together.
    for_each([&](uint32_t name) { ++counts[name - low]; });
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) names.counts.emplace_back(NameId{low + static_cast<uint32_t>(i)}, counts[i]);
    }
  }
  std::set<NameId> recorded;
  for (const model::CollectiveRecord& record : trace.collectives) {
    if (record.source == model::CollectiveRecord::Source::kKernel) recorded.insert(record.event_name);
  }
  names.recorded_as_collective.assign(recorded.begin(), recorded.end());
  return names;
}

void AddKernelKindPasses(RankPasses* passes) { passes->Add<DeviceNamesPass>(); }

DeviceNames FindDeviceNames(const model::Run& run, uint32_t thread_count) {
  RunContext shared;
  shared.run = &run;
  shared.options.thread_count = thread_count;
  DeviceNames names;
  names.counts.resize(run.names.size());
  names.recorded_as_collective.resize(run.names.size());
  for (const RankDeviceNames& rank : MapRanks<DeviceNamesPass>(shared, false)) {
    for (const auto& [name, count] : rank.counts) names.counts[name.value] += count;
    for (const NameId name : rank.recorded_as_collective) names.recorded_as_collective[name.value] = true;
  }
  return names;
}

std::vector<bool> ClassifyCommunication(const model::Run& run, const std::vector<std::string>& own_kernels) {
  return ClassifyCommunication(run, FindDeviceNames(run), own_kernels);
}

std::vector<bool> ClassifyCommunication(const model::Run& run, const DeviceNames& device_names,
                                        const std::vector<std::string>& own_kernels) {
  std::vector<bool> is_communication = device_names.recorded_as_collective;
  // Only these names need the look at the text; Python frames and operators outnumber them by far.
  for (uint32_t i = 0; i < run.names.size(); ++i) {
    if (device_names.counts[i] == 0 || is_communication[i]) continue;
    const std::string_view name = run.names[NameId{i}];
    is_communication[i] = model::IsCommunicationKernelName(name) ||
                          std::any_of(own_kernels.begin(), own_kernels.end(), [name](const std::string& own) {
                            return name.find(own) != std::string_view::npos;
                          });
  }
  return is_communication;
}

std::optional<model::LedgerEntry> NoteUnclaimedCollectives(const model::Run& run, const DeviceNames& device_names,
                                                           const std::vector<bool>& is_communication) {
  uint64_t count = 0;
  std::string_view example;
  for (uint32_t i = 0; i < run.names.size(); ++i) {
    const std::string_view name = run.names[NameId{i}];
    if (device_names.counts[i] == 0 || is_communication[i] || !model::LooksLikeCollectiveKernel(name)) continue;
    count += device_names.counts[i];
    if (example.empty() || name < example) example = name;
  }
  if (count == 0) return std::nullopt;
  model::LedgerEntry entry;
  entry.code = "unclaimed_collectives";
  entry.severity = model::Severity::kWarning;
  entry.count = count;
  entry.message = "kernels whose names sound like collectives of an engine's own count as compute, such as " +
                  std::string(example.substr(0, 120));
  entry.advice = "count them as communication with --communication-kernel TEXT, a part of their names";
  return entry;
}

std::optional<model::LedgerEntry> NoteUnclaimedCollectives(const model::Run& run,
                                                           const std::vector<bool>& is_communication) {
  return NoteUnclaimedCollectives(run, FindDeviceNames(run), is_communication);
}

}  // namespace lockstep::analysis
