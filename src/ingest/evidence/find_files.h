#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/evidence/job_evidence.h"

namespace lockstep::ingest {

/// A file that may hold evidence.
struct EvidenceFile {
  std::string path;
  size_t root = 0;  ///< Which of the paths given it lies in.
  bool named_by_user = false;
  bool is_archive = false;  ///< Its members are files.
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;  ///< Since the Unix epoch. With path, size and inode it tells files of several nodes apart.
  uint64_t inode = 0;
};

/// The order in which FindEvidenceFiles walks: by root, then folder by folder in natural order.
bool InOrderOfWalk(const EvidenceFile& a, const EvidenceFile& b);

/// Files below `paths`, in natural order within each, each once. Links to folders are followed, each folder is entered
/// once. What cannot be opened becomes a problem. Errors: kNotFound for a path that is not there.
Result<std::vector<EvidenceFile>> FindEvidenceFiles(const std::vector<std::string>& paths,
                                                    std::vector<evidence::EvidenceProblem>* problems);

}  // namespace lockstep::ingest
