#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/evidence/inspected_process.h"
#include "node/control/api/inspection.h"

namespace lockstep::jobs {

/// A node that was asked.
struct CollectedNode {
  std::string host;
  std::string problem;  ///< Why nothing came from it, "" = it answered.
};

/// What NCCL's RAS said to a node.
struct CollectedRas {
  std::string host;
  control::RasReply reply;
};

/// What was collected of a job, all at about one moment.
struct CollectedJob {
  std::string job_kind;  ///< "slurm", "torchelastic", ..., "" = none, or unknown.
  std::string job_id;
  int64_t collected_unix_ns = 0;
  std::optional<int32_t> world_size;
  std::vector<CollectedNode> nodes;
  std::vector<evidence::InspectedProcess> processes;
  std::vector<CollectedRas> ras;  ///< By node, in the order of asking.
  std::vector<evidence::MissingEvidence> missing;
};

/// Writes an evidence folder (docs/formats/evidence-folder.md) that only this user may read: stacks and logs are
/// private. Makes `folder`, which must be empty or not there. Errors: kFailedPrecondition (something is in it), kIo.
Status WriteEvidenceFolder(const CollectedJob& job, const std::string& folder);

/// A name for a folder that is not there yet: "lockstep-hang-JOB-20261122T055900" in `parent`, where `what` is "hang";
/// with "-2" and so on.
std::string FreshFolderName(const std::string& parent, const char* what, const std::string& job_id, int64_t unix_ns);

}  // namespace lockstep::jobs
