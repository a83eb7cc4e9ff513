#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/evidence/nccl_evidence.h"

namespace lockstep::ingest {

/// Reads any mix of files and folders: logs with lines of NCCL's, topology and graph files, answers of RAS; plain or
/// compressed, each told by its bytes. A file that cannot be read becomes a problem; one of a folder that holds nothing
/// of NCCL's is listed. Of a log at most 1 GiB is read. Findings are those of FindNcclProblems, FindTopologyProblems
/// and RAS's own.
/// Errors: kNotFound (a path is not there, or nothing in them is NCCL's).
Result<evidence::NcclEvidence> ReadNcclFiles(const std::vector<std::string>& paths);

}  // namespace lockstep::ingest
