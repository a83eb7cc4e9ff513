#pragma once

#include <ostream>
#include <string>

#include "base/result.h"
#include "model/stages/stage_job.h"

namespace lockstep::cli {

/// When a job has ended: what the stages of its steps say, as `lockstep stages` prints it, to `out`; and, where
/// `summary_file` is not empty, as --json there, with what is known of the job. Errors: kNotFound (no process recorded
/// steps), kIo (of the summary).
Status TellStages(const std::string& folder, const std::string& summary_file, model::StageJob facts, std::ostream& out);

/// Before the job starts: what it was told to be the job's workload goes beside the recordings, for `lockstep stages`;
/// of an empty one, what an earlier job left there goes. Errors: kIo.
Status KeepWorkload(const std::string& folder, const model::Workload& workload);

}  // namespace lockstep::cli
