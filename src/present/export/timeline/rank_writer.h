#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/collectives.h"
#include "base/result.h"
#include "model/run.h"
#include "present/export/timeline/event_writer.h"
#include "present/export/timeline/flows.h"
#include "present/export/timeline/links.h"
#include "present/export/timeline/rank_plan.h"
#include "present/export/timeline/rank_selection.h"
#include "present/export/timeline/timeline.h"

namespace lockstep::timeline {

/// What a timeline holds, whatever the format: selected ranks, and for each its tracks and events on the aligned clock.
/// Run and collectives stay the caller's.
class TimelineContent {
 public:
  /// Errors: those of RunSelection; kInvalidArgument when the selection is empty.
  static Result<TimelineContent> Create(const model::Run& run, const analysis::Collectives& collectives,
                                        const Options& options);

  const model::Run& run() const { return *run_; }
  /// Ranks to write, in order of rank and window.
  const std::vector<size_t>& rank_indices() const { return rank_indices_; }
  Summary EmptySummary() const;

  /// Hands the head of a file to `writer`.
  void Begin(EventWriter* writer) const;
  /// Hands one rank over, and counts it into `summary`. Not thread-safe: ids count up.
  void WriteRank(size_t rank_index, EventWriter* writer, Summary* summary) const;

 private:
  TimelineContent(const model::Run& run, const analysis::Collectives& collectives, const Options& options,
                  RunSelection selection);

  void WriteSteps(size_t rank_index, const RankPlan& plan, EventWriter* writer, Summary* summary) const;
  void WriteRequests(size_t rank_index, const RankPlan& plan, EventWriter* writer, Summary* summary) const;
  void WriteTrack(size_t rank_index, const PlannedTrack& planned, const std::vector<RowFlow>& launches,
                  EventWriter* writer, Summary* summary) const;
  void WriteCriticalPath(size_t rank_index, const RankPlan& plan, EventWriter* writer, Summary* summary) const;
  void WriteLog(size_t rank_index, const RankPlan& plan, EventWriter* writer, Summary* summary) const;
  void WriteMemory(size_t rank_index, const RankPlan& plan, EventWriter* writer, Summary* summary) const;
  void WriteCounters(size_t rank_index, EventWriter* writer, Summary* summary) const;
  int64_t ToTimeline(size_t rank_index, int64_t trace_ns) const {
    return run_->ranks[rank_index].clock.ToRun(trace_ns) + shift_ns_;
  }
  void Count(int64_t start_ns, int64_t end_ns, Summary* summary) const;

  const model::Run* run_;
  const analysis::Collectives* collectives_;
  const Options* options_;
  RunSelection selection_;
  std::vector<size_t> rank_indices_;
  std::vector<std::vector<CollectiveRow>> collective_rows_;  ///< By rank index.
  uint64_t collective_flow_count_ = 0;
  Links links_;
  int64_t first_ns_ = 0;
  int64_t shift_ns_ = 0;  ///< Added to all times: where some are negative, which Perfetto cannot hold.
  uint64_t total_event_count_ = 0;
  mutable uint64_t next_flow_id_ = 1;
  mutable uint64_t done_event_count_ = 0;
  mutable std::unique_ptr<TrackIds> ids_;
};

}  // namespace lockstep::timeline
