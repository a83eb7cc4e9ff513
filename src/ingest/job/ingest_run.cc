#include "ingest/job/ingest_run.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "ingest/job/assemble_run.h"
#include "ingest/job/device_counters.h"
#include "ingest/job/file_ingest.h"
#include "ingest/job/ingest_operations.h"
#include "ingest/job/ingest_progress.h"
#include "ingest/job/job_files.h"
#include "ingest/job/stages_beside.h"

namespace lockstep::ingest {
namespace {

uint32_t ThreadCount(const IngestOptions& options) {
  return options.thread_count != 0 ? options.thread_count : std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

Result<model::Run> IngestRun(const std::vector<std::string>& paths, const IngestOptions& options) {
  model::Run run;
  ASSIGN_OR_RETURN(JobFiles found, FindJobFiles(paths, options.limits, &run.ledger));
  const std::vector<TraceFile>& files = found.traces;
  run.kernel_profiles = std::move(found.kernel_profiles);

  ASSIGN_OR_RETURN(const bool has_operations, IngestOperations(files, options, &run));
  if (has_operations) return run;

  uint64_t total_bytes = 0;
  for (const TraceFile& file : files) total_bytes += file.size_bytes;
  ProgressMeter meter(options.on_progress, total_bytes, static_cast<uint32_t>(files.size()), options.cancelled);
  std::vector<FileOutcome> outcomes = IngestFiles(files, options, ThreadCount(options), &meter, &run.names);
  if (meter.cancelled()) return Error{.code = ErrorCode::kCancelled, .message = "reading was cancelled"};
  meter.Finish();

  RETURN_IF_ERROR(AssembleRun(files, std::move(outcomes), &run));
  PlaceDeviceCounters(&run);
  ReadStagesBeside(files, &run);
  return run;
}

}  // namespace lockstep::ingest
