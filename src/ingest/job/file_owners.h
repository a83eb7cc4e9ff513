#pragma once

#include <cstdint>
#include <vector>

#include "ingest/bytes/trace_files.h"

namespace lockstep::ingest {

/// A file and the processes that see it.
struct SeenFile {
  TraceFile file;
  /// (process, index of the file in its list), by process. Empty: every process, at the file's own index.
  std::vector<std::pair<uint32_t, uint32_t>> seen_by = {};
};

/// One list out of all: equal files are one. In: the root's list, and of the processes whose list differs theirs
/// (others' are empty). Out: in the order of FindTraceFiles.
std::vector<SeenFile> UniteFiles(const std::vector<TraceFile>& root,
                                 const std::vector<std::vector<TraceFile>>& differing,
                                 const std::vector<bool>& differs);

/// Which process reads which file: the largest first, each by the least loaded process that sees it. Members of an
/// archive that is read in order stay together. So do files whose names give the same rank, if some of them are spans
/// and one process sees them all. Out: by file, the place in `seen_by` order: (process, index in its list).
std::vector<std::pair<uint32_t, uint32_t>> ChooseReaders(const std::vector<SeenFile>& files, size_t process_count);

}  // namespace lockstep::ingest
