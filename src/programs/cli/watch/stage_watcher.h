#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/frontier/job_stages.h"
#include "analysis/frontier/suspicion.h"
#include "analysis/profile_history/capture_schedule.h"
#include "node/control/api/capture.h"
#include "node/jobs/nodes.h"
#include "programs/cli/capture/capture_output.h"
#include "programs/cli/run_input.h"
#include "programs/cli/watch/evidence_store.h"
#include "programs/cli/watch/stage_events.h"
#include "programs/cli/watch/stage_flags.h"

namespace lockstep::cli {

/// Whose job it is, and what captures of it need.
struct StagedJob {
  jobs::Nodes nodes;
  std::string job_id;         ///< Empty: not known.
  std::string folder;         ///< Captures are kept in folders of their own below it.
  bool allow_unsafe = false;  ///< As that of `lockstep capture`.
  RunInput input;             ///< How traces are read and analysed.
};

/// Asks the daemons of a watched job, again and again, which rank and stage cost it time. Says so when two looks in a
/// row agree, and then captures a few steps of that rank and of a peer once, within the budget. Asking, capturing and
/// analysis run on a thread of their own; all else on the caller's.
class StageWatcher {
 public:
  /// `request`, `console` and `events` outlive this.
  StageWatcher(const StageRequest& request, StagedJob job, Console& console, WatchEvents& events);
  /// Cancels, and waits for that.
  ~StageWatcher();
  StageWatcher(const StageWatcher&) = delete;
  StageWatcher& operator=(const StageWatcher&) = delete;

  /// What is due, and what has come. Does not block.
  void Look(profile_history::JobState state);
  /// Ends a capture that is under way, on all nodes, without waiting for that.
  void CallOff() { cancelled_ = true; }
  bool has_named_a_rank() const { return has_named_a_rank_; }
  /// Cancels, and tells what has come.
  void End();

 private:
  /// What a verdict is about: as long as that is the same it is told once, and captured once.
  struct Subject {
    frontier::Answer answer = frontier::Answer::kUndecided;
    std::optional<model::Stage> stage = {};
    std::optional<int32_t> rank = {};
    bool operator==(const Subject&) const = default;
  };
  /// What a look brings.
  struct Asked {
    frontier::JobStages job;
    int64_t newest_step = INT64_MIN;
    std::optional<frontier::Suspicion> suspicion;
    bool is_busy = false;  ///< Somebody captures the job.
  };
  /// What a capture brings.
  struct Captured {
    std::string problem = {};  ///< Why there is no evidence, or why not all of it could be kept.
    StageEvidence evidence = {};
    int64_t fresh_from = INT64_MIN;  ///< The first step that it did not disturb.
  };

  static Subject SubjectOf(const Asked& asked);
  void TakeStages();
  void BeginCapture(const frontier::Suspicion& suspicion, bool is_busy);
  void Skip(const char* reason);
  void TakeCaptured();
  // On the thread.
  Result<Asked> Ask(int64_t fresh_from, bool may_capture) const;
  Captured CaptureOf(const frontier::Suspicion& suspicion);
  Status Compare(const CaptureReport& report, Captured* captured);

  const StageRequest& request_;
  StagedJob job_;  ///< The input is the thread's while it works.
  Console& console_;
  StageEvents events_;

  std::optional<Subject> seen_;     ///< By the last look.
  std::optional<Subject> settled_;  ///< By two looks in a row; it was told.
  bool is_captured_ = false;        ///< That is done with: there is evidence, or there will be none.
  bool has_named_a_rank_ = false;
  int64_t fresh_from_ = INT64_MIN;  ///< Steps before it were disturbed by a capture.
  int64_t newest_step_ = INT64_MIN;
  std::optional<int64_t> first_steps_ns_;  ///< When enough of them were seen, of any ranks.
  std::deque<int64_t> captures_ns_;        ///< When those of the last hour began.
  EvidenceStore store_;
  std::string told_problem_;
  std::string told_skip_;

  std::optional<int64_t> due_ns_;
  std::atomic<bool> cancelled_ = false;
  std::future<Result<Asked>> asking_;
  std::future<Captured> capturing_;
};

}  // namespace lockstep::cli
