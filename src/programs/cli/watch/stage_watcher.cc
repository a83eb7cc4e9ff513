#include "programs/cli/watch/stage_watcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

#include "analysis/stages/stages_beside.h"
#include "base/nanoseconds.h"
#include "base/now.h"
#include "base/output_file.h"
#include "node/control/api/stages.h"
#include "node/jobs/evidence_folder.h"
#include "node/jobs/job_stages.h"
#include "present/page/page_blocks.h"
#include "programs/cli/capture/own_capture.h"
#include "programs/cli/terminal/is_ready.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

using frontier::Answer;
using frontier::JobStages;
using frontier::Suspicion;
using model::RankStages;
using model::StepStages;
using profile_history::JobState;

constexpr uint64_t kLookSteps = 256;
// Of a look at fewer steps nothing is made: a verdict of a handful is mostly chance, and a capture costs the job more.
constexpr int64_t kLeastLookSteps = 20;
constexpr int64_t kStagesAnswerNs = 10 * kSecondNs;
constexpr int64_t kBudgetHourNs = 3600 * kSecondNs;
constexpr int64_t kEvidenceCaptureNs = 900 * kSecondNs;
// A daemon finds the ranks of a job that begins one after the other. Who has not come by then leaves no steps.
constexpr int64_t kRanksComeNs = 30 * kSecondNs;
// A daemon looks once a second at what its ranks recorded.
constexpr int64_t kStepsComeNs = 5 * kSecondNs;
constexpr uint64_t kEvidencePageBytes = uint64_t{16} << 20;

void DropBefore(int64_t number, std::vector<RankStages>* ranks) {
  for (RankStages& rank : *ranks)
    std::erase_if(rank.steps, [&](const StepStages& step) { return step.number < number; });
}

void DropAfter(int64_t number, std::vector<RankStages>* ranks) {
  for (RankStages& rank : *ranks)
    std::erase_if(rank.steps, [&](const StepStages& step) { return step.number > number; });
}

int64_t NewestStep(const std::vector<RankStages>& ranks) {
  int64_t newest = INT64_MIN;
  for (const RankStages& rank : ranks) {
    if (!rank.steps.empty()) newest = std::max(newest, rank.steps.back().number);
  }
  return newest;
}

/// The steps of a rank that was traced, and when that was; both by its host's clock.
struct TracedRank {
  const RankStages* stages = nullptr;
  int64_t end_ns = 0;      ///< Of the window.
  int64_t written_ns = 0;  ///< Its trace was there.
};

std::vector<TracedRank> TracedRanks(const std::vector<RankStages>& ranks, const control::JobCaptureResult& result) {
  std::vector<TracedRank> traced;
  for (const control::JobTarget& target : result.targets) {
    if (!target.kept()) continue;
    const auto rank = std::find_if(ranks.begin(), ranks.end(),
                                   [&](const RankStages& each) { return each.rank == target.process.rank; });
    if (rank == ranks.end()) continue;
    const int64_t written_ns = target.finished_unix_ns.value_or(UnixNow());
    traced.push_back({&*rank, target.facts.end_unix_ns.value_or(written_ns), written_ns});
  }
  return traced;
}

/// The number of the first step that begins after `instant_ns`; the one after the last where there is none.
int64_t FirstAfter(const RankStages& rank, int64_t instant_ns) {
  const auto first = std::find_if(rank.steps.begin(), rank.steps.end(),
                                  [&](const StepStages& step) { return step.start_ns > instant_ns; });
  if (first != rank.steps.end()) return first->number;
  return rank.steps.empty() ? INT64_MIN : rank.steps.back().number + 1;
}

bool HaveStepsAfter(const std::vector<TracedRank>& traced) {
  return std::all_of(traced.begin(), traced.end(), [](const TracedRank& rank) {
    return !rank.stages->steps.empty() && rank.stages->steps.back().start_ns > rank.end_ns;
  });
}

/// That it is a straggler, or else what it alone is found to have.
std::optional<analysis::Finding> FindingOn(int32_t rank, const std::vector<analysis::Finding>& findings) {
  for (const bool is_straggler : {true, false}) {
    for (const analysis::Finding& finding : findings) {
      const bool is_of_it = std::find(finding.ranks.begin(), finding.ranks.end(), rank) != finding.ranks.end();
      if (is_of_it && (is_straggler ? finding.id == "straggler" : finding.ranks.size() == 1)) return finding;
    }
  }
  return std::nullopt;
}

}  // namespace

StageWatcher::StageWatcher(const StageRequest& request, StagedJob job, Console& console, WatchEvents& events)
    : request_(request), job_(std::move(job)), console_(console), events_(events), store_(request.kept_bytes) {
  if (job_.nodes.job_id.empty()) job_.nodes.job_id = job_.job_id;
}

StageWatcher::~StageWatcher() {
  cancelled_ = true;
  if (asking_.valid()) asking_.wait();
  if (capturing_.valid()) capturing_.wait();
}

StageWatcher::Subject StageWatcher::SubjectOf(const Asked& asked) {
  const frontier::Verdict& verdict = asked.job.verdict;
  Subject subject{.answer = verdict.answer};
  if (verdict.answer == Answer::kStraggler) subject.rank = asked.job.account.ranks[verdict.rank_idx];
  if (verdict.answer == Answer::kUndecided) {
    if (asked.suspicion && asked.suspicion->stands_out) subject.rank = asked.suspicion->rank;
  } else if (verdict.answer != Answer::kEven) {
    subject.stage = verdict.stage;
  }
  return subject;
}

Result<StageWatcher::Asked> StageWatcher::Ask(int64_t fresh_from, bool may_capture) const {
  ASSIGN_OR_RETURN(ingest::StageFiles files, jobs::AskStages(job_.nodes, kLookSteps, kStagesAnswerNs));
  Asked asked;
  asked.newest_step = NewestStep(files.ranks);
  DropBefore(fresh_from, &files.ranks);
  asked.job = frontier::AssessJob(std::move(files.ranks), std::move(files.ledger), std::move(files.facts));
  asked.suspicion = Suspect(asked.job);
  asked.is_busy = asked.suspicion && may_capture && IsCaptured(job_.nodes, job_.nodes.job_id);
  return asked;
}

void StageWatcher::Look(JobState state) {
  if (IsReady(capturing_)) TakeCaptured();
  if (IsReady(asking_)) TakeStages();
  if (asking_.valid() || capturing_.valid() || state == JobState::kSilent) return;
  const int64_t now_ns = SteadyNow();
  if (due_ns_ && now_ns < *due_ns_) return;
  due_ns_ = now_ns + request_.every_ns;
  asking_ = std::async(std::launch::async, [this, fresh_from = fresh_from_, may_capture = !is_captured_] {
    return Ask(fresh_from, may_capture);
  });
}

void StageWatcher::TakeStages() {
  const Result<Asked> asked = asking_.get();
  const std::string problem = asked ? "" : asked.error().ToString();
  if (problem != told_problem_ && !problem.empty()) events_.Problem(problem);
  told_problem_ = problem;
  if (!asked) return;
  // Its numbers begin again where the job does.
  if (asked->newest_step < newest_step_) fresh_from_ = INT64_MIN;
  const bool has_moved = asked->newest_step != newest_step_;
  newest_step_ = asked->newest_step;
  if (!has_moved || asked->job.account.step_count < kLeastLookSteps) return;
  if (!first_steps_ns_) first_steps_ns_ = SteadyNow();
  const bool lacks_ranks = static_cast<int64_t>(asked->job.account.ranks.size()) < asked->job.world_size();
  if (lacks_ranks && SteadyNow() < *first_steps_ns_ + kRanksComeNs) return;
  const Subject subject = SubjectOf(*asked);
  if (seen_ != subject) {
    seen_ = subject;
    return;
  }
  if (settled_ != subject) {
    settled_ = subject;
    is_captured_ = false;
    has_named_a_rank_ = has_named_a_rank_ || subject.answer == Answer::kStraggler;
    events_.Verdict(asked->job);
  }
  if (asked->suspicion && !is_captured_) BeginCapture(*asked->suspicion, asked->is_busy);
}

void StageWatcher::Skip(const char* reason) {
  if (told_skip_ != reason) events_.Skipped(reason);
  told_skip_ = reason;
}

void StageWatcher::BeginCapture(const Suspicion& suspicion, bool is_busy) {
  const int64_t now_ns = SteadyNow();
  while (!captures_ns_.empty() && captures_ns_.front() <= now_ns - kBudgetHourNs) captures_ns_.pop_front();
  if (captures_ns_.size() >= request_.captures_an_hour) return Skip("budget");
  if (is_busy) return Skip("busy");
  told_skip_.clear();
  captures_ns_.push_back(now_ns);
  cancelled_ = false;
  events_.Capturing(suspicion);
  capturing_ = std::async(std::launch::async, [this, suspicion] { return CaptureOf(suspicion); });
}

StageWatcher::Captured StageWatcher::CaptureOf(const Suspicion& suspicion) {
  Captured captured{.evidence = {.suspicion = suspicion}};
  std::string& folder = captured.evidence.folder;
  folder = jobs::FreshFolderName(job_.folder, "stages", job_.nodes.job_id, UnixNow());
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    captured.problem = fmt::format("{}: cannot be made: {}", folder, error.message());
    return captured;
  }
  OwnCapture capture{
      .timeout_ns = kEvidenceCaptureNs, .allow_unsafe = job_.allow_unsafe, .folder = folder, .cancelled = &cancelled_};
  capture.selector.job_id = job_.nodes.job_id;
  capture.selector.ranks = {{suspicion.rank, suspicion.rank}, {suspicion.peer, suspicion.peer}};
  capture.window.mode = control::CaptureWindow::Mode::kIterations;
  capture.window.iterations = request_.step_count;
  const Result<CaptureReport> report = TakeCapture(job_.nodes, capture);
  Status done = report ? KeepCaptureJson(*report) : Status(report.error());
  if (done) done = Compare(*report, &captured);
  if (!done) {
    captured.problem = fmt::format("no evidence on rank {}: {}", suspicion.rank, done.error().ToString());
    return captured;
  }
  // Beside the traces, which go when there is no room for them.
  done = WriteOutputFile(fmt::format("{}/{}", folder, EvidenceStore::kVerdictFile),
                         StageEvents::EvidenceJson(captured.evidence) + "\n");
  if (!done) captured.problem = done.error().ToString();
  return captured;
}

Status StageWatcher::Compare(const CaptureReport& report, Captured* captured) {
  const std::vector<std::string> files = KeptFiles(report);
  if (files.empty()) return Error{ErrorCode::kNotFound, ReasonOf(report.result)};
  StageEvidence& evidence = captured->evidence;
  std::vector<RankStages> ranks;
  std::vector<TracedRank> traced;
  const int64_t end_ns = SteadyNow() + kStepsComeNs;
  do {
    if (!ranks.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ASSIGN_OR_RETURN(ingest::StageFiles steps, jobs::AskStages(job_.nodes, control::kMostKeptSteps, kStagesAnswerNs));
    ranks = std::move(steps.ranks);
    traced = TracedRanks(ranks, report.result);
  } while (!HaveStepsAfter(traced) && SteadyNow() < end_ns && !cancelled_);
  int64_t last_traced = INT64_MIN;
  for (const TracedRank& rank : traced) {
    last_traced = std::max(last_traced, FirstAfter(*rank.stages, rank.end_ns) - 1);
    captured->fresh_from = std::max(captured->fresh_from, FirstAfter(*rank.stages, rank.written_ns) + 1);
  }
  // Behind the window a rank stands still while it writes its trace: that is no fault of it.
  if (!traced.empty()) DropAfter(last_traced, &ranks);
  std::erase_if(ranks, [](const RankStages& rank) { return rank.steps.empty(); });

  ASSIGN_OR_RETURN(model::Run run, job_.input.Ingest(files, console_, true));
  if (!ranks.empty()) run.stages = std::make_shared<const std::vector<RankStages>>(std::move(ranks));
  ASSIGN_OR_RETURN(const analysis::AnalysisResult result, job_.input.Analyze(&run));
  const auto& beside = result.Get<analysis::StagesBeside>();
  if (const analysis::StageScope* scope = beside.Scope("traced")) {
    evidence.first_step = scope->first_step();
    evidence.last_step = scope->last_step();
  }
  for (const analysis::StageAgreementRow& row : beside.agreement) {
    if (row.question == "straggler") evidence.answer = row;
  }
  if (evidence.answer.sentence.empty()) return Error{ErrorCode::kNotFound, "the daemons tell no steps any more"};
  evidence.finding = FindingOn(evidence.answer.trace_rank.value_or(evidence.suspicion.rank), result.findings);
  evidence.report = report.folder + "/report.html";
  const page::PageInput page{run, result, job_.input.analysis(), IsPartial(run)};
  const Status written = WriteOutputFile(
      evidence.report, [&](std::ostream& out) { page::WriteAnalyzePage(page, kEvidencePageBytes, out); });
  if (!written) {
    evidence.report.clear();
    captured->problem = written.error().ToString();
  }
  return {};
}

void StageWatcher::TakeCaptured() {
  Captured captured = capturing_.get();
  fresh_from_ = std::max(fresh_from_, captured.fresh_from);
  std::error_code ignored;
  if (!captured.problem.empty()) fs::remove(captured.evidence.folder, ignored);  // Only where nothing came into it.
  // One that was called off says nothing of the job: it is made again.
  const bool is_lost = cancelled_ && !captured.problem.empty();
  if (!store_.Keep(captured.evidence.folder)) {
    captured.evidence.report.clear();
    if (captured.problem.empty()) {
      captured.problem = fmt::format("{}: its traces and report were larger than --evidence-budget, and are removed",
                                     captured.evidence.folder);
    }
  }
  if (is_lost) return;
  is_captured_ = true;
  if (!captured.evidence.answer.sentence.empty()) events_.Evidence(captured.evidence);
  if (!captured.problem.empty()) events_.Problem(captured.problem);
}

void StageWatcher::End() {
  CallOff();
  if (asking_.valid()) asking_.wait();
  if (capturing_.valid()) TakeCaptured();
}

}  // namespace lockstep::cli
