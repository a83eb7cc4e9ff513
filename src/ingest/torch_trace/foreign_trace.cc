#include "ingest/torch_trace/foreign_trace.h"

#include <fmt/format.h>

#include <set>

#include "base/ascii.h"

namespace lockstep::ingest {
namespace {

/// "[TP00] " of "[TP00] 1000": a rank, as mergers put it before the process id. Empty: there is none.
std::string_view RankPrefix(std::string_view place) {
  const size_t end = place.find("] ");
  if (!place.starts_with('[') || end == std::string_view::npos || end > 24 || !IsDigit(place[end - 1])) return {};
  return place.substr(0, end + 1);
}

}  // namespace

std::string ForeignByProcessName(std::string_view process_name) {
  if (process_name != "Ascend Hardware" && process_name != "CANN") return {};
  return "is a trace of Ascend's profiler (torch_npu, trace_view.json), which is not read: MindStudio and its analysis "
         "tools do";
}

std::string ForeignByPlaces(const std::vector<std::string_view>& places) {
  std::set<std::string_view> ranks;
  for (const std::string_view place : places) {
    if (place == "CUDA functions" || place == "CPU functions") {
      return "is a trace of PyTorch's old profiler (torch.autograd.profiler, before 1.8.1), which is not read: it has "
             "no streams and no threads; record with torch.profiler";
    }
    if (const std::string_view prefix = RankPrefix(place); !prefix.empty()) ranks.insert(prefix);
  }
  if (ranks.size() < 2) return {};
  return fmt::format(
      "holds {} ranks in one, merged by another program for viewers ({}, {}, ...); give the traces that it was made "
      "from",
      ranks.size(), *ranks.begin(), *std::next(ranks.begin()));
}

}  // namespace lockstep::ingest
