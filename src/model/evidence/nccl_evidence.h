#pragma once

#include <string>
#include <vector>

#include "model/evidence/job_evidence.h"
#include "model/evidence/nccl_job.h"
#include "model/evidence/nccl_state.h"
#include "model/evidence/nccl_topology.h"

namespace lockstep::evidence {

/// All that NCCL's own files tell of a job, and what is wrong in it.
struct NcclEvidence {
  NcclJob job;
  std::vector<NcclTopology> topologies;  ///< By file.
  std::vector<NcclGraphs> graphs;        ///< By file.
  std::vector<RasReport> ras;            ///< By file.
  std::vector<NcclLogFinding> findings;  ///< The worst first.
  std::vector<EvidenceProblem> problems;
  std::vector<std::string> other_files;  ///< In folders: nothing of NCCL's in them.
};

}  // namespace lockstep::evidence
