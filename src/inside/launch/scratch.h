#pragma once

#include <string>
#include <vector>

#include "inside/launch/environment.h"
#include "inside/launch/tool_command.h"

namespace lockstep::launch {

/// Where profilers put gigabytes while the job runs: TMPDIR. `given`: the user's choice for the tool, below which a
/// folder of the user's own is made. Without one TMPDIR stays; for ncu, whose lock file of another user would stand in
/// the way in a shared /tmp, a folder of the user's own is made there too. What would make it fail (not writable), slow
/// (a network's file system) or full is said. Sets TMPDIR in `command` and adds to its warnings.
void PrepareScratch(const std::string& tool, const std::string& given, const Environment& environment,
                    ToolCommand* command);

}  // namespace lockstep::launch
