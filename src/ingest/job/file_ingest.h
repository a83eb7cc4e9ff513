#pragma once

#include <optional>
#include <vector>

#include "ingest/bytes/trace_files.h"
#include "ingest/job/ingest_progress.h"
#include "ingest/job/ingest_run.h"
#include "ingest/torch_trace/trace_reader.h"
#include "model/name_table.h"

namespace lockstep::ingest {

/// What became of one file.
struct FileOutcome {
  /// One; several for a file that holds several ranks. Names are merged away: ids are those of the run.
  std::vector<TraceContent> contents = {};
  std::optional<Error> error = {};  ///< Set when there is no content.
  bool source_failed = false;       ///< The bytes could not be read; otherwise they are not a trace.
  uint32_t name_count = 0;          ///< Of the run's table once the names of this file were merged into it.
};

/// Reads all files on up to `thread_count` threads and merges their names into `names` in the order of `files`, so that
/// ids do not depend on which file is finished first. Out: parallel to `files`.
/// Where threads outnumber files, the spare ones decompress ahead.
std::vector<FileOutcome> IngestFiles(const std::vector<TraceFile>& files, const IngestOptions& options,
                                     uint32_t thread_count, ProgressMeter* meter, model::NameTable* names);

}  // namespace lockstep::ingest
