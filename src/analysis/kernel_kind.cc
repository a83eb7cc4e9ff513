#include "analysis/kernel_kind.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "analysis/rank_map.h"
#include "analysis/rank_passes.h"

namespace lockstep::analysis {
namespace {

/// Communication libraries, and the cross-device reduction that TraceLens knows of vLLM and SGLang. Compared in lower
/// case and without underscores.
constexpr std::array<std::string_view, 9> kLibraryMarks = {
    "nccl", "rccl", "hccl", "xccl", "oneccl", "nvshmem", "deepep", "hybridep", "crossdevicereduce"};

/// Operations that engines write themselves (SGLang, vLLM, TensorRT-LLM, FlashInfer, aiter, PyTorch symmetric memory),
/// whatever their spelling: all_reduce, AllReduce and allreduce are one.
constexpr std::array<std::string_view, 6> kOperationMarks = {"allreduce", "reducescatter", "allgather",
                                                             "alltoall",  "epdispatch",    "epcombine"};

/// "BlockAllReduce" and its like reduce over threads of one device.
constexpr std::array<std::string_view, 5> kWithinDevice = {"block", "warp", "thread", "quad", "cta"};

constexpr std::array<std::string_view, 3> kCpuBackends = {"gloo:", "mpi:", "ucc:"};

std::string Fold(std::string_view text) {
  std::string folded;
  folded.reserve(text.size());
  for (const char c : text) {
    if (c == '_') continue;
    folded.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return folded;
}

bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

/// A mark that does not stand behind "block", "warp" and the like.
bool HasMark(std::string_view folded, std::string_view mark) {
  for (size_t at = folded.find(mark); at != std::string_view::npos; at = folded.find(mark, at + 1)) {
    const std::string_view before = folded.substr(0, at);
    if (std::none_of(kWithinDevice.begin(), kWithinDevice.end(),
                     [before](std::string_view scope) { return EndsWith(before, scope); })) {
      return true;
    }
  }
  return false;
}

template <typename Marks>
bool HasAnyMark(std::string_view name, const Marks& marks) {
  const std::string folded = Fold(name);
  return std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) { return HasMark(folded, mark); });
}

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

bool IsCommunicationKernelName(std::string_view name) { return HasAnyMark(name, kLibraryMarks); }

bool LooksLikeCollectiveKernel(std::string_view name) { return HasAnyMark(name, kOperationMarks); }

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
    is_communication[i] = IsCommunicationKernelName(name) ||
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
    if (device_names.counts[i] == 0 || is_communication[i] || !LooksLikeCollectiveKernel(name)) continue;
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
