#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"
#include "model/run.h"

namespace lockstep::ingest {

struct TraceReaderOptions {
  size_t window_bytes = size_t{256} << 10;    ///< Size of the text window; grows when one event is larger.
  size_t max_event_bytes = size_t{64} << 20;  ///< A larger single event is skipped and counted.
  /// Called about once a window with the number of events read since the last call: for progress.
  std::function<void(uint64_t)> on_events = {};
  /// Asked between windows by readers that do not read through a ByteSource: true ends them with kCancelled.
  std::function<bool()> cancelled = {};
  bool learned_templates = true;  ///< Off: every event takes the general path (tests compare both).
};

/// A rank's place in a communicator of NCCL's, as the profiler plugin knows it.
struct CommunicatorPlace {
  uint64_t id = 0;  ///< Equal on all its ranks.
  int32_t rank = 0;
};

/// What one trace file holds, before it is known which rank of the job it is.
struct TraceContent {
  model::RankTrace trace;  ///< `rank` is meaningful only when has_rank.
  bool has_rank = false;   ///< distributedInfo carried a rank.
  model::NameTable names;  ///< The file's own names; IngestRun merges them.
  model::Ledger ledger;
  /// Ranks that `lockstep merge` put into this JSON; 0 = it did not write it. More than one cannot be told apart again.
  int64_t merged_rank_count = 0;
  /// Equal in all forms that one recording of a process was exported in; 0: there is one form only.
  uint64_t recording = 0;
  bool is_span_trace = false;  ///< What liblockstep wrote in the job: joins another trace of its rank.
  bool is_nccl_ring = false;   ///< What the NCCL profiler plugin keeps: joins a profiler's trace of its rank.
  std::string foreign;         ///< A sentence: whose other format of Chrome's trace it is; empty: none that is known.
  std::vector<CommunicatorPlace> communicators;  ///< Of such a one: parallel to RankTrace::groups.
  bool several_processes = false;  ///< One of several ranks of a file whose name can say the rank of none.
};

/// Reads one PyTorch/Kineto Chrome-trace JSON to columns in one pass over windows of text.
/// Damage is repaired or skipped and counted in the ledger; a truncated file is read to its last whole event.
/// Errors: kCorruptData when the bytes are not a trace at all; kUnsupported for another program's; kFailedPrecondition
/// for merged JSON of several ranks; kIo, kLimitExceeded from `source` when nothing was read before. Memory: the
/// columns, plus two windows. Format: docs/formats/torch-trace.md.
Result<TraceContent> ReadTrace(ByteSource& source, const std::string& display_name, const TraceReaderOptions& options);

}  // namespace lockstep::ingest
