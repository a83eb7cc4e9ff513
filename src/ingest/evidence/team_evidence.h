#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/team.h"
#include "ingest/evidence/evidence_files.h"
#include "model/evidence/job_evidence.h"

namespace lockstep::ingest {

/// ReadEvidence by several processes: dumps, stacks and logs are read where they lie, each by one process, and what
/// they say is gathered at the root. The same as ReadEvidence, whatever the number of processes.
class TeamEvidence {
 public:
  /// Registers the questions; every process makes one. `team` outlives it.
  TeamEvidence(Team* team, unsigned default_thread_count);
  ~TeamEvidence();

  /// Root. Errors: those of ReadEvidence; a path is missing when no process has it.
  Result<evidence::JobEvidence> Read(const std::vector<std::string>& paths, const EvidenceOptions& options);

 private:
  class Share;
  Team& team_;
  std::unique_ptr<Share> share_;
};

}  // namespace lockstep::ingest
