#include "ingest/job/ingest_operations.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "ingest/op_trace/op_trace.h"

namespace lockstep::ingest {
namespace {

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

}  // namespace

Result<bool> IngestOperations(const std::vector<TraceFile>& files, const IngestOptions& options, model::Run* run) {
  if (!AreOperationTraces(files, options.limits).value_or(false)) return false;
  if (!options.take_operations) {
    return Error{.code = ErrorCode::kUnsupported,
                 .message = "is an operation trace, which holds no kernels; lockstep analyze reads it",
                 .file = files.front().DisplayName()};
  }
  ASSIGN_OR_RETURN(OperationContent content, ReadOperations(files, options.limits));
  run->operations = std::move(content.trace);
  run->ledger.Append(std::move(content.ledger));
  AddWorkers(files, run);
  return true;
}

}  // namespace lockstep::ingest
