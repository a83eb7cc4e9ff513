#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/run.h"
#include "present/export/timeline/event_writer.h"
#include "present/export/timeline/rank_selection.h"
#include "present/export/timeline/slice_levels.h"

namespace lockstep::timeline {

/// One model track and the timeline tracks that its events go to, one per level with events.
struct PlannedTrack {
  size_t track_idx = 0;
  NestingLevels levels;
  std::vector<SliceTrack> slice_tracks;  ///< By level.
};

/// The tracks of one rank's window as they are written.
struct RankPlan {
  ProcessTrack process;
  model::EventColumns steps;  ///< Markers, sorted; the name's id is the index into step_numbers.
  std::vector<int64_t> step_numbers;
  NestingLevels step_levels;
  std::vector<SliceTrack> step_tracks;
  model::EventColumns requests;  ///< Sorted; the name's id is the index into RankTrace::requests.
  NestingLevels request_levels;
  std::vector<SliceTrack> request_tracks;
  std::vector<PlannedTrack> tracks;
  std::optional<SliceTrack> critical_path_track;  ///< Where one is asked for.
  std::optional<SliceTrack> log_track;            ///< Where there are lines of its log.
  SliceTrack memory_track;
  bool has_memory = false;
  int64_t real_process_id = 0;  ///< Of most CPU events; 0 when there are none.
  uint64_t slice_count = 0;
  uint64_t left_out_count = 0;
};

/// Ids of processes and threads that cannot collide: processes count from 0, threads from a number above all of them.
class TrackIds {
 public:
  explicit TrackIds(const model::Run& run);
  int32_t process_id(size_t rank_index) const { return process_ids_[rank_index]; }
  int32_t next_thread_id() { return next_thread_id_++; }

 private:
  std::vector<int32_t> process_ids_;
  int32_t next_thread_id_ = 0;
};

/// "rank 12 · node03 · cuda:4 (NVIDIA H100)", with "· window 1" where a rank has several.
std::string ProcessName(const model::RankTrace& trace, bool several_windows);

/// Decides names, order and levels. Order below a process: steps, requests, then each stream with its annotations, then
/// each thread with its calls and Python frames, then the rest, then memory.
RankPlan PlanRank(const model::Run& run, size_t rank_index, const RunSelection& selection, TrackIds* ids);

/// Metadata of the whole file and of one process, as JSON objects. Format: docs/formats/perfetto.md#metadata.
std::string RunFacts(size_t process_count, const std::string& version, int64_t shift_ns);
std::string ProcessFacts(const model::Run& run, size_t rank_index, const RankPlan& plan);

}  // namespace lockstep::timeline
