#pragma once

#include <cstdint>
#include <vector>

#include "analysis/collectives.h"
#include "model/run.h"
#include "present/export/timeline/event_writer.h"
#include "present/export/timeline/rank_selection.h"

namespace lockstep::timeline {

using model::RowRef;

/// A row's part in a flow, sorted by row in the lists below.
struct RowFlow {
  RowRef at;
  Flow flow;
};

/// From launch calls to the first device event of the same correlation, where both are written: two entries each,
/// sorted by row. Ids count up from *next_id. Cost: O(n log n) in the rank's launches.
std::vector<RowFlow> LaunchFlows(const model::RankTrace& trace, size_t rank_index, const RunSelection& selection,
                                 uint64_t* next_id);

/// A row that is a member of a collective instance.
struct CollectiveRow {
  RowRef at;
  uint32_t instance_idx = 0;
  uint32_t member_idx = 0;
  bool in_flow = false;  ///< Two or more members are written.
  Flow flow = {};
};

/// Rows of every rank that are members of collectives and are written, by rank index, sorted by row; with the flows
/// from the first to arrive to the last. Memory: 48 bytes per member.
std::vector<std::vector<CollectiveRow>> FindCollectiveRows(const model::Run& run,
                                                           const analysis::Collectives& collectives,
                                                           const RunSelection& selection, uint64_t* next_id,
                                                           uint64_t* flow_count);

}  // namespace lockstep::timeline
