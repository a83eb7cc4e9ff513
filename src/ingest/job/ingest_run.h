#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/trace_files.h"
#include "ingest/torch_trace/trace_reader.h"
#include "model/run.h"

namespace lockstep::ingest {

/// A moment of an ingest, for a progress line. Called from worker threads, one at a time.
struct IngestProgress {
  uint64_t consumed_bytes = 0;  ///< Of the (compressed) files.
  uint64_t total_bytes = 0;
  uint64_t json_bytes = 0;
  uint64_t event_count = 0;
  uint32_t finished_file_count = 0;
  uint32_t file_count = 0;
};

struct IngestOptions {
  ByteLimits limits;
  TraceReaderOptions reader;
  uint32_t thread_count = 0;     ///< 0 = one per processor, at most one per file.
  bool take_operations = false;  ///< Operation traces are read too, and not refused: the caller knows Run::operations.
  std::function<void(const IngestProgress&)> on_progress = {};
  /// Set by another thread: reading ends within the time of one window, and IngestRun returns kCancelled.
  const std::atomic<bool>* cancelled = nullptr;
};

/// Reads every trace below `paths` into one run: finds files, reads them in parallel, decides rank and world size
/// (distributedInfo, then name, then order; the ledger says which), keeps several windows of a rank apart, reports
/// conflicts, merges names. Files that are not traces or are damaged get a ledger row; the others are read all the
/// same. An operation trace is the whole run (Run::operations). Tables of kernels beside the traces are
/// Run::kernel_profiles, steps in stages that span traces hold are Run::stages. Errors: kNotFound from FindTraceFiles;
/// kCorruptData when not one file is a trace; kUnsupported for an operation trace that the caller does not take;
/// kCancelled. Result: the same, byte for byte, whatever the number of threads.
Result<model::Run> IngestRun(const std::vector<std::string>& paths, const IngestOptions& options);

/// Whether a part of what was asked for could not be read (the ledger holds an error): exit status 4.
inline bool IsPartial(const model::Run& run) { return run.ledger.Has(model::Severity::kError); }

}  // namespace lockstep::ingest
