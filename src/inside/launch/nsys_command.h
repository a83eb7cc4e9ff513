#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "inside/launch/rank_environment.h"
#include "inside/launch/rank_filter.h"
#include "inside/launch/tool_command.h"
#include "inside/launch/tool_version.h"

namespace lockstep::launch {

/// What of a job is recorded: all of it, or from where the program says so.
enum class CaptureRange : uint8_t { kWhole, kCudaProfiler, kNvtx };

/// What the user asks of Nsight Systems.
struct NsysRequest {
  std::vector<std::string> traces = {};  ///< Empty: what suits PyTorch.
  CaptureRange range = CaptureRange::kWhole;
  std::string nvtx_range = {};          ///< "step", "step@domain": kNvtx.
  int64_t range_count = 1;              ///< How many ranges are recorded, a report each.
  std::optional<int64_t> delay_s = {};  ///< Before recording starts,
  std::optional<int64_t> duration_s = {};
  bool prints_statistics = false;
  bool exports_sqlite = false;
  bool overwrites = false;
  std::vector<std::string> options = {};  ///< nsys's own, passed on; where one is ours too, theirs counts.
};

/// Options of `nsys profile` by what this version knows. `output`: the report's path without ".nsys-rep".
/// Errors: kInvalidArgument for a trace that the version does not have, and for an option of the user's that would take
/// the output's name out of our hands.
Result<ToolCommand> MakeNsysCommand(const NsysRequest& request, const ToolVersion& version, const std::string& output,
                                    const RankIdentity& identity, const RankFilter& filter);

}  // namespace lockstep::launch
