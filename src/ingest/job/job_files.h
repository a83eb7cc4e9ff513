#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ingest/bytes/trace_files.h"
#include "model/kernel_profile.h"
#include "model/ledger.h"

namespace lockstep::ingest {

/// The files below the paths of a job.
struct JobFiles {
  std::vector<TraceFile> traces;
  std::shared_ptr<const model::KernelProfiles>
      kernel_profiles;  ///< Null: no such tables. Shared by those that show it.
};

/// FindTraceFiles, and of what else the walk meets: Nsight Systems' JSON lines, which are traces, and the tables of
/// Nsight Compute and `nsys stats`, read. Ledger: "kernel_tables" says how many there are; that of the tables. Errors:
/// those of FindTraceFiles; kNotFound when there is nothing but tables.
Result<JobFiles> FindJobFiles(const std::vector<std::string>& paths, const ByteLimits& limits, model::Ledger* ledger);

}  // namespace lockstep::ingest
