#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/trace_files.h"
#include "ingest/job/file_ingest.h"
#include "ingest/job/join_spans.h"
#include "model/run.h"

namespace lockstep::ingest {

/// Where a rank's trace came from.
struct TracePlace {
  size_t file = 0;     ///< Into the files.
  size_t content = 0;  ///< Into FileOutcome::contents.
  bool is_nccl_ring = false;
};

/// A trace that no profiler wrote (spans, operations of NCCL), and the trace that it is joined to.
struct TraceJoin {
  TracePlace from;
  TracePlace into;
  SpanScope scope = SpanScope::kOwnTime;
};

/// What became of it.
struct JoinedTrace {
  uint64_t left_out = 0;  ///< Events outside of `into`.
  // Of `into`, as they are now.
  uint64_t event_count = 0;
  uint64_t complete_event_count = 0;
  std::optional<int64_t> first_ns = {};
  std::optional<int64_t> last_ns = {};
};

/// Where events are that traces are without.
struct EventsElsewhere {
  /// Carries out joins, in their order; out: parallel to them.
  std::function<std::vector<JoinedTrace>(const std::vector<TraceJoin>&)> join;
  std::vector<TracePlace> places = {};  ///< Out: where each of the run's ranks came from.
};

/// What IngestRun does once every file was read: ranks and windows are decided, spans joined, ledgers put together. In:
/// `outcomes` parallel to `files`, whose traces may be without events, which `elsewhere` then has; `run` has names and
/// what is in the ledger already. Out: the run's ranks. Errors: kCorruptData when not one file is a trace.
Status AssembleRun(const std::vector<TraceFile>& files, std::vector<FileOutcome> outcomes, model::Run* run,
                   EventsElsewhere* elsewhere = nullptr);

}  // namespace lockstep::ingest
