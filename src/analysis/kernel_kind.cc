#include "analysis/kernel_kind.h"

#include <algorithm>
#include <array>
#include <string>

namespace lockstep::analysis {
namespace {

/// Communication libraries, and the operations that engines write themselves (SGLang, vLLM, TensorRT-LLM, FlashInfer,
/// aiter, PyTorch symmetric memory, DeepEP). Compared in lower case and without underscores, so that all_reduce,
/// AllReduce and allreduce are one.
constexpr std::array<std::string_view, 15> kMarks = {
    "nccl",       "rccl",      "hccl",      "xccl",          "oneccl",    "nvshmem",  "deepep",           "hybridep",
    "epdispatch", "epcombine", "allreduce", "reducescatter", "allgather", "alltoall", "crossdevicereduce"};

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

constexpr size_t PairIndex(char first, char second) {
  return static_cast<size_t>(static_cast<unsigned char>(first) % 32) * 32 + static_cast<unsigned char>(second) % 32;
}

/// Whether some mark begins with these two letters. Names of kernels run to hundreds of characters: this looks at each
/// place once instead of searching for every mark.
constexpr std::array<bool, size_t{32}* 32> kBeginsMark = [] {
  std::array<bool, size_t{32} * 32> begins{};
  for (const std::string_view mark : kMarks) begins[PairIndex(mark[0], mark[1])] = true;
  return begins;
}();

bool HasMarkAt(std::string_view folded, size_t at) {
  const std::string_view rest = folded.substr(at);
  const bool is_mark = std::any_of(kMarks.begin(), kMarks.end(),
                                   [rest](std::string_view mark) { return rest.substr(0, mark.size()) == mark; });
  if (!is_mark) return false;
  const std::string_view before = folded.substr(0, at);
  return std::none_of(kWithinDevice.begin(), kWithinDevice.end(),
                      [before](std::string_view scope) { return EndsWith(before, scope); });
}

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

bool IsCommunicationKernelName(std::string_view name) {
  const std::string folded = Fold(name);
  for (size_t at = 0; at + 1 < folded.size(); ++at) {
    if (kBeginsMark[PairIndex(folded[at], folded[at + 1])] && HasMarkAt(folded, at)) return true;
  }
  return false;
}

bool IsCpuCollectiveName(std::string_view name) {
  return std::any_of(kCpuBackends.begin(), kCpuBackends.end(),
                     [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; });
}

std::vector<bool> ClassifyCommunication(const model::Run& run) {
  std::vector<bool> is_communication(run.names.size());
  // Only names of kernels need the look at the text; Python frames and operators outnumber them by far.
  std::vector<bool> is_kernel(run.names.size());
  for (const model::RankTrace& rank : run.ranks) {
    for (const model::Track& track : rank.tracks) {
      if (track.lane != model::Lane::kDevice) continue;
      for (const NameId name : track.events.name) is_kernel[name.value] = true;
    }
  }
  for (uint32_t i = 0; i < run.names.size(); ++i) {
    if (is_kernel[i]) is_communication[i] = IsCommunicationKernelName(run.names[NameId{i}]);
  }
  for (const model::RankTrace& rank : run.ranks) {
    for (const model::CollectiveRecord& record : rank.collectives) {
      if (record.source == model::CollectiveRecord::Source::kKernel) is_communication[record.event_name.value] = true;
    }
  }
  return is_communication;
}

}  // namespace lockstep::analysis
