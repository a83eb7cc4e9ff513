#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/stages/stage_job.h"

namespace lockstep::cli {

inline constexpr const char* kWorkloadFlagHelp =
    "What the job does, kept in the summary; repeatable. 'lockstep compare' takes runs of equal workloads only";

/// The words of --workload, "key=value" each. Errors: kInvalidArgument (no key, characters or length that a key or
/// value may not have, a key twice, too many).
Result<model::Workload> ReadWorkloadFlags(const std::vector<std::string>& words);

}  // namespace lockstep::cli
