#include "ingest/job/ingest_run.h"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "ingest/job/assemble_run.h"
#include "ingest/job/file_ingest.h"
#include "ingest/job/ingest_progress.h"
#include "ingest/op_trace/op_trace.h"

namespace lockstep::ingest {
namespace {

uint32_t ThreadCount(const IngestOptions& options) {
  return options.thread_count != 0 ? options.thread_count : std::max(1u, std::thread::hardware_concurrency());
}

/// The workers of an operation trace as ranks without tracks.
void AddWorkers(const std::vector<TraceFile>& files, model::Run* run) {
  std::map<int32_t, model::RankTrace> ranks;
  for (const model::Operation& operation : run->operations->operations) {
    model::RankTrace& trace = ranks[operation.rank];
    const int64_t end_ns = operation.start_ns + operation.duration_ns;
    trace.rank = {operation.rank};
    trace.rank_source = model::RankSource::kDistributedInfo;
    trace.base_time_known = true;
    ++trace.event_count;
    trace.first_ns = std::min(trace.first_ns.value_or(operation.start_ns), operation.start_ns);
    trace.last_ns = std::max(trace.last_ns.value_or(end_ns), end_ns);
  }
  for (auto& [rank, trace] : ranks) {
    trace.source = files.size() == 1 ? files.front().DisplayName() : std::string();
    run->ranks.push_back(std::move(trace));
  }
}

Status IngestOperations(const std::vector<TraceFile>& files, const IngestOptions& options, model::Run* run) {
  if (!options.take_operations) {
    return Error{.code = ErrorCode::kUnsupported,
                 .message = "is an operation trace, which holds no kernels; lockstep analyze reads it",
                 .file = files.front().DisplayName()};
  }
  ASSIGN_OR_RETURN(OperationContent content, ReadOperations(files, options.limits));
  run->operations = std::move(content.trace);
  run->ledger.Append(std::move(content.ledger));
  AddWorkers(files, run);
  return {};
}

}  // namespace

Result<model::Run> IngestRun(const std::vector<std::string>& paths, const IngestOptions& options) {
  model::Run run;
  ASSIGN_OR_RETURN(const std::vector<TraceFile> files, FindTraceFiles(paths, options.limits, &run.ledger));

  // A file that cannot be opened is told below, with all others.
  if (const Result<bool> operations = AreOperationTraces(files, options.limits); operations.value_or(false)) {
    RETURN_IF_ERROR(IngestOperations(files, options, &run));
    return run;
  }

  uint64_t total_bytes = 0;
  for (const TraceFile& file : files) total_bytes += file.size_bytes;
  ProgressMeter meter(options.on_progress, total_bytes, static_cast<uint32_t>(files.size()), options.cancelled);
  std::vector<FileOutcome> outcomes = IngestFiles(files, options, ThreadCount(options), &meter, &run.names);
  if (meter.cancelled()) return Error{.code = ErrorCode::kCancelled, .message = "reading was cancelled"};
  meter.Finish();

  RETURN_IF_ERROR(AssembleRun(files, std::move(outcomes), &run));
  return run;
}

}  // namespace lockstep::ingest
