#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "inside/launch/kernel_choice.h"
#include "inside/launch/nsys_command.h"
#include "inside/launch/rank_environment.h"
#include "inside/launch/rank_filter.h"
#include "inside/launch/tool_command.h"
#include "inside/launch/tool_version.h"

namespace lockstep::launch {

/// What the user asks of Nsight Compute.
struct NcuRequest {
  std::vector<KernelTotal> heaviest = {};  ///< Of an analysis, most time first.
  std::vector<std::string> kernels = {};   ///< Named by the user.
  std::string set = "roofline";            ///< Of sections.
  std::optional<int64_t> skip = {};        ///< Launches of each kernel and shape that are passed over.
  int64_t count = 1;                       ///< Launches of each kernel and shape that are profiled.
  CaptureRange range = CaptureRange::kWhole;
  std::string nvtx_range = {};
  bool overwrites = false;
  std::vector<std::string> options = {};  ///< ncu's own, passed on.
};

/// Options of `ncu`. Each launch that it profiles is run again and again while the other ranks wait, so kernels are
/// always named, and where several ranks are chosen by their numbers each takes its share of them. Errors:
/// kInvalidArgument where it would hang: a job of several ranks without names, and kernels of NCCL.
Result<ToolCommand> MakeNcuCommand(const NcuRequest& request, const ToolVersion& version, const std::string& output,
                                   const RankIdentity& identity, const RankFilter& filter);

}  // namespace lockstep::launch
