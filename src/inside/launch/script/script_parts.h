#pragma once

#include <cstdint>
#include <string>

#include "inside/launch/rank_environment.h"
#include "inside/launch/script/job_script.h"

namespace lockstep::launch {

/// "01:30:00".
std::string ClockTime(int64_t seconds);

/// Lines "# ..." on what the script does and which ranks are profiled.
std::string Purpose(const JobRequest& request, const std::string& how_to_submit);

/// Modules, variables, TMPDIR and the names of lockstep and the reports' folder. `job_id`: the shell's words for the
/// job's id, as in "$SLURM_JOB_ID"; `scratch`: whether to say where tools keep their recording.
std::string Preparation(const JobRequest& request, const std::string& job_id);

/// `"$LOCKSTEP" run ... --out "$OUT" -- CMD`, with what CMD needs to know its rank where `starter`'s variables are not
/// torchrun's.
std::string WrappedCommand(const JobRequest& request, Launcher starter);

/// In front of a launch with variables that the shell of the script is not to expand.
std::string ShellcheckLine(const JobRequest& request);

/// torchrun's words up to the command, for one torchrun on each node.
std::string Torchrun(const JobRequest& request, const std::string& node_count, const std::string& id);

/// What follows the job: its status kept, the reports listed.
std::string Ending(const JobRequest& request);

/// Seconds before the limit at which ranks are told to end, so that reports are written; 0: no tool writes any.
int64_t WarningSeconds(const JobRequest& request);

}  // namespace lockstep::launch
