#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/frontier/job_stages.h"
#include "analysis/kernel_kind.h"
#include "analysis/rank_context.h"
#include "model/run.h"
#include "model/stages/stage.h"
#include "model/step.h"
#include "present/query/stop_sign.h"
#include "present/report/run_tables.h"

namespace lockstep::query {

/// A track of the run: `id` is its place in Source::tracks().
struct TrackPlace {
  uint32_t rank_index = 0;
  uint32_t track_index = 0;  ///< Into RankTrace::tracks.
  uint64_t first_event = 0;  ///< Id of its first event: events are numbered through all tracks from 0.
  const model::Track* track = nullptr;
};

/// A part of a rank's step: a row of `stages`.
struct StagePlace {
  uint32_t rank_idx = 0;  ///< Into JobStages::ranks, and so on.
  uint32_t step_idx = 0;
  uint32_t span_idx = 0;
  int64_t start_ns = 0;  ///< The rank's wall clock.
};

/// What a stage adds to a round: a row of `stage_frontier`.
struct FrontierPlace {
  int64_t step = 0;
  int64_t round = 0;
  model::Stage stage = model::Stage::kOther;
  bool ends_in_meeting = false;
  int32_t rank = 0;
  int64_t increment_ns = 0;
};

/// What the tables read: a run whose clocks are aligned, the passes' tables, and what is worked out of them on demand
/// and kept: nothing of it is made before a query reads a column that needs it. Borrows its
/// arguments. Not thread-safe: one per connection.
class Source {
 public:
  Source(const model::Run& run, const analysis::AnalysisResult& result, const analysis::AnalysisOptions& options,
         StopSign* stop);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const model::Run& run() const { return run_; }
  const analysis::AnalysisResult& result() const { return result_; }
  const model::RankTrace& rank(size_t rank_index) const { return run_.ranks[rank_index]; }

  /// By (rank index, track index).
  std::span<const TrackPlace> tracks() const { return tracks_; }
  /// Whether all traces are of one window: then the order of ranks is the order of traces.
  bool HasOneWindow() const { return run_.ranks.empty() || run_.ranks.front().window == run_.ranks.back().window; }
  uint64_t event_count() const { return event_count_; }
  uint64_t device_event_count() const { return device_event_count_; }

  /// Per event of a track, how many events of it began earlier (or are listed earlier) and have not ended when this one
  /// starts. First call for a track costs O(n log depth) and 4 bytes an event.
  std::span<const uint32_t> DepthsOf(uint32_t track_id) const;
  /// Largest end in each block of kBlockSize events, trace clock. First call for a track costs O(n).
  static constexpr size_t kBlockSize = 512;
  std::span<const int64_t> BlockEndsOf(uint32_t track_id) const;
  /// Number of the step in whose window the instant lies (docs/metrics.md#step-windows).
  std::optional<int64_t> StepAt(size_t rank_index, int64_t trace_ns) const;
  /// The runtime call that launched a device event; not found() when the file has none.
  analysis::LaunchRef LaunchOf(const TrackPlace& place, size_t row) const;
  /// What a device event is.
  analysis::KernelKind KindOf(const model::EventColumns& events, size_t row) const;
  /// Every member of every instance, in the instances' order. First call costs 8 bytes a member.
  const std::vector<report::MemberPlace>& members() const;
  /// Null without stage files. First call costs a copy of them.
  const frontier::JobStages* job_stages() const;
  /// Every part of every step, by rank and step; what each adds to each round, in order. First call costs 24 bytes a
  /// part, 40 an increment.
  const std::vector<StagePlace>& stage_places() const;
  const std::vector<FrontierPlace>& frontier_places() const;

  /// Loops over rows end early when it is set; the query then fails.
  StopSign& stop() const { return *stop_; }

 private:
  struct RankSteps {
    std::vector<model::Step> windows;
    std::vector<std::vector<analysis::LaunchRef>> launches;
  };
  const RankSteps& StepsOf(size_t rank_index) const;
  const analysis::RunContext& Shared() const;

  const model::Run& run_;
  const analysis::AnalysisResult& result_;
  const analysis::AnalysisOptions options_;
  StopSign* stop_;
  std::vector<TrackPlace> tracks_;
  uint64_t event_count_ = 0;
  uint64_t device_event_count_ = 0;

  // Made on demand.
  mutable std::vector<std::vector<uint32_t>> depths_;
  mutable std::vector<std::vector<int64_t>> block_ends_;
  mutable std::vector<std::unique_ptr<RankSteps>> steps_;
  mutable std::unique_ptr<analysis::RunContext> shared_;
  mutable std::vector<report::MemberPlace> members_;
  mutable std::unique_ptr<frontier::JobStages> job_stages_;
  mutable std::vector<StagePlace> stage_places_;
  mutable std::vector<FrontierPlace> frontier_places_;
};

}  // namespace lockstep::query
