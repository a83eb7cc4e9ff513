#pragma once

#include <string>
#include <vector>

#include "inside/launch/nsys_command.h"

namespace lockstep::launch {

/// What a profiler left.
struct Outcome {
  std::vector<std::string> files = {};     ///< Reports, names in their folder, sorted.
  std::vector<std::string> problems = {};  ///< Why there are none, or fewer, and what to do; a sentence each.
};

/// Looks for what the run of `nsys profile` that has ended should have written to `output` (a path without
/// ".nsys-rep"), since `start_unix_ns`: nsys ends with the job's own status also where it has written nothing.
Outcome FindNsysOutcome(const std::string& output, const NsysRequest& request, const std::string& tool,
                        int64_t start_unix_ns);

/// The same for ncu. `kernels`: whether certain ones were asked for.
Outcome FindNcuOutcome(const std::string& output, bool kernels, int64_t start_unix_ns);

}  // namespace lockstep::launch
