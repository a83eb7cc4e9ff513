#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/evidence/job_evidence.h"

namespace lockstep::ingest {

struct EvidenceOptions {
  unsigned thread_count = 0;  ///< 0 = one a core.
  std::function<void(size_t done, size_t total)> on_progress = {};
};

/// Reads any mix of files and folders: flight-recorder dumps, stacks, logs of ranks, NCCL logs, RAS answers, plain or
/// compressed; and evidence folders that `lockstep hang` or `lockstep watch` left (docs/formats/evidence-folder.md).
/// A file's kind is recognised by its bytes, its rank by its name, its folder's name or its content. A file that cannot
/// be read becomes an EvidenceProblem; the others are used. Errors: kNotFound (a path is not there, or nothing in them
/// is evidence: says what would be), kInvalidArgument (two different jobs' dumps in one folder: says which).
Result<evidence::JobEvidence> ReadEvidence(const std::vector<std::string>& paths, const EvidenceOptions& options = {});

}  // namespace lockstep::ingest
