#pragma once

#include <string>
#include <vector>

#include "generator/trace_spec.h"
#include "generator/truth.h"

namespace lockstep::tracegen {

struct Generated {
  std::vector<std::string> paths;  ///< One per file written, by rank.
  std::string truth_path;
  std::vector<RankTruth> ranks;
  int32_t step_count = 0;
  uint64_t json_bytes = 0;
  uint64_t event_count = 0;
};

/// Simulates the job and writes its files and its truth. Existing files of the same names are replaced.
/// Errors: throws std::runtime_error when a file cannot be written.
Generated Generate(const TraceSpec& spec);

/// Steps that make a rank's file about spec.target_megabytes large.
int32_t StepsForTarget(const TraceSpec& spec);

}  // namespace lockstep::tracegen
