#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "analysis/hang/diagnosis.h"
#include "analysis/hang/progress.h"
#include "base/now.h"
#include "ingest/evidence/evidence_files.h"
#include "node/control/client/job_links.h"
#include "node/jobs/live_job.h"
#include "present/report/hang/hang_report.h"
#include "programs/cli/cli.h"
#include "programs/cli/live_flags.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/terminal/interrupt.h"
#include "programs/cli/text_flags.h"
#include "programs/cli/watch/continuous_flags.h"
#include "programs/cli/watch/job_profiler.h"
#include "programs/cli/watch/stage_flags.h"
#include "programs/cli/watch/stage_watcher.h"
#include "programs/cli/watch/watch_events.h"

namespace lockstep::cli {
namespace {

/// `lockstep watch`: follows a job with looks that cost it nothing, learns its rhythm, and when nothing moves for
/// longer than that explains, collects evidence while the ranks are still there. With --every it also captures the job
/// on a schedule, and says when it has become slower; with --stages it says who costs the job time, and captures that.
class WatchCommand : public Subcommand {
 public:
  const char* name() const override { return "watch"; }
  const char* purpose() const override { return "Follow a job, and when it gets stuck say why before it is killed"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadFlags();
  Result<int> Follow(jobs::LiveJob& live, Console& console, WatchEvents& events);
  Result<std::unique_ptr<JobProfiler>> MakeProfiler(const std::string& job_id, Console& console, WatchEvents& events);
  Result<std::unique_ptr<StageWatcher>> MakeStageWatcher(const std::string& job_id, Console& console,
                                                         WatchEvents& events);
  void Sleep(int64_t time_ns) const;
  /// Collects and judges; true: it is stuck.
  Result<bool> Judge(jobs::LiveJob& live, const hang::ProgressTracker& tracker, Console& console, WatchEvents& events);

  LiveFlags live_;
  TextFlags text_;
  ContinuousFlags continuous_;
  StageFlags stages_;
  bool is_continuous_ = false;
  bool has_stages_ = false;
  bool captures_ = false;  ///< One of both: a signal ends them in order.
  std::string interval_ = "1s";
  int64_t interval_ns_ = 0;
  std::string least_silence_ = "5s";
  int64_t least_silence_ns_ = 0;
  std::string first_silence_ = "30s";
  int64_t first_silence_ns_ = 0;
  std::string for_;
  int64_t for_ns_ = 0;  ///< 0 = without end.
  std::string keep_;
  bool once_ = false;
  bool json_ = false;
};

using control::InspectionDepth;
using hang::ProgressSample;
using hang::ProgressState;
using hang::ProgressTracker;
using hang::VerdictKind;
using profile_history::JobState;

constexpr const char* kWatchFooter =
    "Each look reads the kernel's counters of each rank's threads; it stops no process.\n"
    "How long a job may stand still is learned: three times the longest gap between movements\n"
    "among the last fifty, so that a slow job gets more time. After that, stacks, dumps and\n"
    "logs are collected and judged as by 'lockstep hang'.\n"
    "A rank that spins or polls while it waits (for a device, for example) looks as if it\n"
    "moved: watch cannot see that it is stuck, 'lockstep hang' can.\n"
    "With --every it also captures the job (as lockstep capture does), keeps the results, and\n"
    "reports when the job has become slower than it was (docs/watch.md).\n"
    "With --stages it says which rank costs the job time in which stage of the step, and captures\n"
    "a few steps of that rank and of a peer by itself to see why.\n"
    "Exit status: 0 the job ended, or --for is over, and nothing was reported; 1 failed; 2\n"
    "misused; 3 the job got stuck, or slower, or a rank was named that costs it time.\n"
    "\n"
    "Examples:\n"
    "  lockstep watch --once\n"
    "  lockstep watch --job 123 --via srun --json\n"
    "  lockstep watch --job 123 --every 10m --iterations 3 --budget 2GiB\n"
    "  lockstep watch --job 123 --stages --keep evidence";

std::vector<ProgressSample> SamplesOf(const std::vector<jobs::NodeLook>& looks) {
  std::vector<ProgressSample> samples;
  for (const jobs::NodeLook& look : looks) {
    for (const control::ProcessGlance& glance : look.inspection.glances) {
      if (glance.state == "X" || glance.state == "Z") continue;
      samples.push_back({fmt::format("{} {} {}", look.host, glance.pid, glance.start_ticks), glance.rank,
                         glance.main_switches, glance.main_cpu_ns, glance.threads_cpu_ns});
    }
  }
  return samples;
}

/// That a node answered and had no such process (any more).
bool FoundNothing(const jobs::NodeLook& look) { return look.error && look.error->code == ErrorCode::kNotFound; }

void WatchCommand::Declare(CLI::App& app) {
  live_.Declare(app);
  app.option_defaults()->group("Watching");
  app.add_option("--interval", interval_, "Time between two looks (1s)")->type_name("TIME");
  app.add_option("--silence", least_silence_, "Shorter pauses never count as stuck (5s)")->type_name("TIME");
  app.add_option("--first-silence", first_silence_, "The same, before the job's rhythm is known (30s)")
      ->type_name("TIME");
  app.add_option("--for", for_, "End after this time (when the job ends)")->type_name("TIME");
  app.add_flag("--once", once_, "End with status 3 as soon as the job is stuck");
  continuous_.Declare(app);
  stages_.Declare(app);
  app.option_defaults()->group("Output");
  app.add_option("--keep", keep_, "Keep evidence in subfolders of this folder (the current one)")->type_name("DIR");
  app.add_flag("--json", json_, "Print one JSON object per line for each event (lockstep.watch/1, docs/json.md)");
  text_.Declare(app);
  app.footer(kWatchFooter);
}

Status WatchCommand::ReadFlags() {
  RETURN_IF_ERROR(live_.Read());
  ASSIGN_OR_RETURN(interval_ns_, ParseTime(interval_, "--interval"));
  ASSIGN_OR_RETURN(least_silence_ns_, ParseTime(least_silence_, "--silence"));
  ASSIGN_OR_RETURN(first_silence_ns_, ParseTime(first_silence_, "--first-silence"));
  ASSIGN_OR_RETURN(has_stages_, stages_.Read());
  ASSIGN_OR_RETURN(is_continuous_, continuous_.Read(has_stages_));
  captures_ = is_continuous_ || has_stages_;
  if (interval_ns_ < 50'000'000) return Misuse("--interval: 50ms at least");
  if (!for_.empty()) {
    ASSIGN_OR_RETURN(for_ns_, ParseTime(for_, "--for"));
    if (for_ns_ <= 0) return Misuse("--for: more than nothing");
  }
  return {};
}

Result<int> WatchCommand::Run(Console& console) {
  RETURN_IF_ERROR(ReadFlags());
  ASSIGN_OR_RETURN(jobs::LiveJob live, live_.Find());
  WatchEvents events(console.out, json_);
  return Follow(live, console, events);
}

Result<std::unique_ptr<JobProfiler>> WatchCommand::MakeProfiler(const std::string& job_id, Console& console,
                                                                WatchEvents& events) {
  ASSIGN_OR_RETURN(jobs::Nodes nodes, live_.FindDaemons());
  control::CaptureSelector selector;
  selector.job_id = nodes.job_id.empty() ? job_id : nodes.job_id;
  selector.pids = live_.selection().pids;
  selector.ranks = live_.selection().ranks;
  return JobProfiler::Create(continuous_.request(), continuous_.input(), std::move(nodes), std::move(selector), console,
                             events);
}

Result<std::unique_ptr<StageWatcher>> WatchCommand::MakeStageWatcher(const std::string& job_id, Console& console,
                                                                     WatchEvents& events) {
  ASSIGN_OR_RETURN(jobs::Nodes nodes, live_.FindDaemons());
  return std::make_unique<StageWatcher>(stages_.request(),
                                        StagedJob{.nodes = std::move(nodes),
                                                  .job_id = job_id,
                                                  .folder = keep_.empty() ? "." : keep_,
                                                  .allow_unsafe = continuous_.request().allow_unsafe,
                                                  .input = continuous_.input()},
                                        console, events);
}

void WatchCommand::Sleep(int64_t time_ns) const {
  constexpr int64_t kPieceNs = 50'000'000;
  const int64_t end_ns = SteadyNow() + time_ns;
  // In pieces where a signal only sets a flag.
  for (int64_t left_ns = time_ns; left_ns > 0; left_ns = end_ns - SteadyNow()) {
    if (captures_ && InterruptGuard::interrupted()) return;
    std::this_thread::sleep_for(std::chrono::nanoseconds(captures_ ? std::min(left_ns, kPieceNs) : left_ns));
  }
}

Result<bool> WatchCommand::Judge(jobs::LiveJob& live, const ProgressTracker& tracker, Console& console,
                                 WatchEvents& events) {
  events.Silent(tracker);
  const std::string parent = keep_.empty() ? "." : keep_;
  Result<jobs::Collection> collection =
      jobs::CollectEvidence(live, live_.timeout_ns(), jobs::FreshFolderName(parent, "hang", "", UnixNow()));
  if (!collection) {
    events.NotCollected(collection.error().ToString());
    return false;
  }
  const Result<evidence::JobEvidence> job = ingest::ReadEvidence({collection->folder});
  if (!job) return job.error();
  const hang::Diagnosis diagnosis = hang::Diagnose(*job);
  const VerdictKind kind = diagnosis.verdict.kind;
  // What it cannot decide is still a job in which nothing moves.
  const bool is_stuck = kind != VerdictKind::kHealthy && kind != VerdictKind::kStraggler;
  events.Verdict(diagnosis.verdict, is_stuck, collection->folder);
  if (is_stuck && !json_) {
    const report::TextOptions text = text_.Options(console, 10);
    report::WriteHangText(
        diagnosis, {.colour = text.colour, .columns = text.width, .all = false, .unicode = text.unicode}, console.out);
    console.out.flush();
  }
  return is_stuck;
}

Result<int> WatchCommand::Follow(jobs::LiveJob& live, Console& console, WatchEvents& events) {
  ProgressTracker tracker({.least_silence_ns = least_silence_ns_, .first_silence_ns = first_silence_ns_});
  std::set<std::string> lost;
  bool has_begun = false;
  bool knows_rhythm = false;
  bool is_judged = false;  // This silence has been looked into.
  bool was_stuck = false;
  int64_t silence_ns = 0;
  std::optional<InterruptGuard> guard;
  std::unique_ptr<JobProfiler> profiler;
  std::unique_ptr<StageWatcher> stages;
  const auto finish = [&] {
    if (stages != nullptr) stages->End();
    if (profiler != nullptr) profiler->End();
    const bool was_slower = profiler != nullptr && profiler->regression_count() > 0;
    const bool was_named = stages != nullptr && stages->has_named_a_rank();
    return was_stuck || was_slower || was_named ? kFinding : kDone;
  };
  const int64_t begin_ns = SteadyNow();
  for (;;) {
    const int64_t look_ns = SteadyNow();
    std::vector<jobs::NodeLook> looks = live.Look(InspectionDepth::kGlance, live_.timeout_ns());
    const std::vector<ProgressSample> samples = SamplesOf(looks);
    const bool answered = std::any_of(looks.begin(), looks.end(),
                                      [](const jobs::NodeLook& look) { return !look.error || FoundNothing(look); });
    for (const jobs::NodeLook& look : looks) {
      const bool is_lost = look.error && !(has_begun && FoundNothing(look));
      if (!is_lost) lost.erase(look.host);
      if (is_lost && has_begun && lost.insert(look.host).second) events.NodeLost(look.host, look.error->ToString());
    }
    if (!has_begun) {
      const bool all_ranks = live.AsksForAllRanks(looks);
      ASSIGN_OR_RETURN(const jobs::CollectedJob job, jobs::JoinLooks(std::move(looks), all_ranks));
      events.Begin(job.job_id, samples.size(), live.node_count(), interval_ns_);
      has_begun = true;
      if (captures_) guard.emplace();
      if (is_continuous_) {
        ASSIGN_OR_RETURN(profiler, MakeProfiler(job.job_id, console, events));
      }
      if (has_stages_) {
        ASSIGN_OR_RETURN(stages, MakeStageWatcher(job.job_id, console, events));
      }
    }
    // A node that does not answer says nothing of its ranks: neither that they moved nor that they ended.
    JobState job_state = JobState::kSilent;
    if (answered && lost.empty()) {
      const ProgressState state = tracker.Look(SteadyNow(), samples);
      for (const int32_t rank : tracker.gone_ranks()) events.RankEnded(rank, samples.size());
      if (state == ProgressState::kEnded) {
        events.Ended(was_stuck);
        return finish();
      }
      if (tracker.is_rhythm_known() && !std::exchange(knows_rhythm, true)) events.Rhythm(tracker);
      if (is_judged && tracker.silence_ns() == 0) {
        events.Moves(silence_ns, tracker);
        is_judged = false;
      }
      silence_ns = tracker.silence_ns();
      if (state == ProgressState::kSilent && !is_judged) {
        if (profiler != nullptr) profiler->CallOff();
        if (stages != nullptr) stages->CallOff();
        ASSIGN_OR_RETURN(const bool is_stuck, Judge(live, tracker, console, events));
        tracker.Rebase();
        is_judged = is_stuck;
        if (!is_stuck) tracker.Excuse(silence_ns);
        was_stuck = was_stuck || is_stuck;
        if (is_stuck && once_) return finish();
      }
      if (!is_judged && state == ProgressState::kMoving) {
        job_state = tracker.silence_ns() == 0 ? JobState::kMoving : JobState::kStill;
      }
    }
    // Until a rhythm is known, loading and compiling would be what is captured.
    if (profiler != nullptr && knows_rhythm) profiler->Look(job_state);
    if (stages != nullptr) stages->Look(job_state);
    if (profiler != nullptr && profiler->is_done()) return finish();
    if (captures_ && InterruptGuard::interrupted()) return finish();
    if (for_ns_ > 0 && SteadyNow() - begin_ns >= for_ns_) return finish();
    Sleep(interval_ns_ - (SteadyNow() - look_ns));
  }
}

}  // namespace

std::unique_ptr<Subcommand> MakeWatch() { return std::make_unique<WatchCommand>(); }

}  // namespace lockstep::cli
