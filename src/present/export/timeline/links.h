#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/run.h"
#include "present/export/timeline/flows.h"
#include "present/export/timeline/rank_selection.h"

namespace lockstep::timeline {

/// A request's part in a flow.
struct RequestFlow {
  uint32_t request_idx = 0;
  Flow flow;
};

/// A rank's parts in arrows between spans of one W3C trace.
struct RankLinks {
  std::vector<RowFlow> spans;                              ///< Sorted by row.
  std::vector<RequestFlow> requests;                       ///< Sorted by request.
  std::vector<std::pair<RowRef, uint32_t>> contexts = {};  ///< Rows and their index in linked_spans, sorted by row.
};

struct Links {
  std::vector<RankLinks> ranks;  ///< By rank index.
  uint64_t flow_count = 0;
  /// Left out: the called one begins before its caller, as clocks of two hosts may say. An arrow goes forward in time.
  uint64_t backward_count = 0;
};

/// The arrows of analysis::FindSpanLinks between what is written: one flow for each pair. Cost: O(n log n) in the spans
/// with a trace context.
Links FindLinks(const model::Run& run, const RunSelection& selection, uint64_t* next_id);

}  // namespace lockstep::timeline
