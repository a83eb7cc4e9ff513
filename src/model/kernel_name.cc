#include "model/kernel_name.h"

#include <algorithm>
#include <array>
#include <string>

namespace lockstep::model {
namespace {

/// Communication libraries (RCCL runs MSCCL's algorithms as kernels of that name), and the cross-device reduction that
/// TraceLens knows of vLLM and SGLang. Compared in lower case and without underscores.
constexpr std::array<std::string_view, 10> kLibraryMarks = {
    "nccl", "rccl", "msccl", "hccl", "xccl", "oneccl", "nvshmem", "deepep", "hybridep", "crossdevicereduce"};

/// Operations that engines write themselves (SGLang, vLLM, TensorRT-LLM, FlashInfer, aiter, PyTorch symmetric memory),
/// whatever their spelling: all_reduce, AllReduce and allreduce are one.
constexpr std::array<std::string_view, 6> kOperationMarks = {"allreduce", "reducescatter", "allgather",
                                                             "alltoall",  "epdispatch",    "epcombine"};

/// "BlockAllReduce" and its like reduce over threads of one device.
constexpr std::array<std::string_view, 5> kWithinDevice = {"block", "warp", "thread", "quad", "cta"};

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

}  // namespace

bool IsCommunicationKernelName(std::string_view name) { return HasAnyMark(name, kLibraryMarks); }

bool LooksLikeCollectiveKernel(std::string_view name) { return HasAnyMark(name, kOperationMarks); }

}  // namespace lockstep::model
