#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/stages/stage_summary.h"

namespace lockstep::ingest {

/// The file in which `lockstep run --stages=DIR` keeps what it was told of the job, beside what the ranks record.
inline constexpr const char* kWorkloadFile = "stages_workload.json";

/// Reads "lockstep.stages/1", which anybody may have changed. What earlier versions did not write is absent; their
/// world size is the number of ranks. Errors name the member and what is wrong with it: kCorruptData, kInvalidArgument
/// (out of range), kLimitExceeded, kUnsupported (another schema).
Result<model::StageSummary> ParseStageSummary(std::string_view json, const std::string& source);

/// The same of a file, or of summary.json in a folder. Errors: those, kIo (not there, or not to be read).
Result<model::StageSummary> ReadStageSummary(const std::string& path);

/// Is it a summary of stages, or a folder that holds one and no trace?
bool IsStageSummary(const std::string& path);

/// One object of texts. Errors as above.
Result<model::Workload> ParseWorkload(std::string_view json, const std::string& source);

}  // namespace lockstep::ingest
