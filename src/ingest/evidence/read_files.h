#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/evidence/evidence_files.h"
#include "ingest/evidence/evidence_part.h"
#include "ingest/evidence/find_files.h"
#include "model/evidence/job_evidence.h"

namespace lockstep::ingest {

/// What each file gave, parallel to `files`: several parts for an archive, none for what is not evidence.
std::vector<std::vector<EvidencePart>> ReadEvidenceFiles(const std::vector<EvidenceFile>& files,
                                                         const EvidenceOptions& options);

/// The rest of ReadEvidence: parts to one job. `problems`: those of finding the files.
Result<evidence::JobEvidence> FinishEvidence(const std::vector<std::string>& paths,
                                             const std::vector<evidence::EvidenceProblem>& problems,
                                             std::vector<std::vector<EvidencePart>> by_file);

}  // namespace lockstep::ingest
