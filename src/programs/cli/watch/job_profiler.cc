#include "programs/cli/watch/job_profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "analysis/analysis_result.h"
#include "analysis/profile_history/capture_figures.h"
#include "base/now.h"
#include "base/output_file.h"
#include "node/control/client/trace_names.h"
#include "present/page/page_blocks.h"
#include "programs/cli/capture/own_capture.h"
#include "programs/cli/comparison_page.h"
#include "programs/cli/terminal/is_ready.h"

namespace lockstep::cli {
namespace {

using profile_history::CaptureRecord;
using profile_history::HistoryStore;
using profile_history::JobState;
using profile_history::Judgement;
using profile_history::Outcome;
using profile_history::ScheduleStep;

constexpr uint64_t kPageBytes = uint64_t{16} << 20;  // One of many: the figures matter more than each event.
constexpr int64_t kMetricsEveryNs = 5'000'000'000;

/// Whether figures of it can be held against those of other captures: every rank of the job is in it.
bool HasEveryRank(const control::JobCaptureResult& result) {
  return result.missing_ranks.empty() && !result.targets.empty() && result.kept_count() == result.targets.size();
}

/// Steps that every rank's window holds, by PyTorch's optimizer.
int64_t OptimizerSteps(const control::JobCaptureResult& result) {
  uint64_t least = UINT64_MAX;
  for (const control::JobTarget& target : result.targets) {
    if (target.kept()) least = std::min<uint64_t>(least, target.facts.optimizer_step_count);
  }
  return least == UINT64_MAX ? 0 : static_cast<int64_t>(least);
}

}  // namespace

Result<std::unique_ptr<JobProfiler>> JobProfiler::Create(const ContinuousRequest& request, RunInput& input,
                                                         jobs::Nodes nodes, control::CaptureSelector selector,
                                                         Console& console, WatchEvents& events) {
  std::string folder = request.folder;
  if (folder.empty()) folder = "lockstep-profile-" + control::SafeNamePart(selector.job_id);
  ASSIGN_OR_RETURN(HistoryStore store, HistoryStore::Open(folder));
  std::unique_ptr<JobProfiler> profiler(new JobProfiler(request, input, std::move(nodes), std::move(selector), console,
                                                        ProfilerEvents(events), std::move(store)));
  size_t past_count = 0;
  for (const CaptureRecord& record : profiler->store_.past()) {
    // Of other jobs, figures are left alone.
    if (record.job_id != profiler->selector_.job_id) continue;
    profiler->history_.Observe(record);
    ++past_count;
    if (!record.figures.empty()) profiler->last_success_unix_ns_ = record.time_unix_ns;
  }
  profiler->kept_ = profiler->store_.KeepWithin(request.budget_bytes);
  profiler->events_.Begin(folder, request.every_ns, request.budget_bytes, past_count,
                          profiler->store_.skipped_line_count());
  return profiler;
}

JobProfiler::JobProfiler(const ContinuousRequest& request, RunInput& input, jobs::Nodes nodes,
                         control::CaptureSelector selector, Console& console, ProfilerEvents events, HistoryStore store)
    : request_(request),
      input_(input),
      nodes_(std::move(nodes)),
      selector_(std::move(selector)),
      console_(console),
      events_(events),
      store_(std::move(store)),
      history_(request.history),
      schedule_(request.every_ns) {}

JobProfiler::~JobProfiler() {
  // Their threads use members that go before them.
  cancelled_ = true;
  if (work_.valid()) work_.wait();
  if (comparing_.valid()) comparing_.wait();
  RemoveMetrics();
}

bool JobProfiler::is_done() const {
  return request_.capture_count > 0 && counts_.done + counts_.partial + counts_.failed >= request_.capture_count &&
         !work_.valid() && !comparing_.valid();
}

Status JobProfiler::Analyse(const CaptureReport& report, Captured* captured) {
  const std::vector<std::string> files = KeptFiles(report);
  if (files.empty()) return Error{ErrorCode::kNotFound, ReasonOf(report.result)};
  ASSIGN_OR_RETURN(model::Run run, input_.Ingest(files, console_, true));
  ASSIGN_OR_RETURN(const analysis::AnalysisResult result, input_.Analyze(&run));
  comparison::RunProfile profile =
      comparison::MakeRunProfile(captured->record.capture, run, result, input_.analysis(), {});
  profile.partial = IsPartial(run);
  CaptureRecord& record = captured->record;
  const int32_t world_size = record.world_size;
  profile_history::FillFigures(profile, OptimizerSteps(report.result), &record);
  record.world_size = std::max(record.world_size, world_size);
  // Without one rank the others' figures are another job's.
  if (!HasEveryRank(report.result) || profile.partial) record.figures.clear();
  const std::string path = store_.ReportFile(record.capture);
  const page::PageInput page{run, result, input_.analysis(), profile.partial};
  const Status written =
      WriteOutputFile(path, [&](std::ostream& out) { page::WriteAnalyzePage(page, kPageBytes, out); });
  if (written) captured->report = path;
  if (!written) captured->problem = written.error().ToString();
  captured->profile = std::move(profile);
  return {};
}

JobProfiler::Captured JobProfiler::CaptureAndAnalyse(const std::string& name, int64_t begin_unix_ns) {
  Captured captured;
  CaptureRecord& record = captured.record;
  record.capture = name;
  record.time_unix_ns = begin_unix_ns;
  record.job_id = selector_.job_id;
  record.outcome = Outcome::kFailed;
  if (IsCaptured(nodes_, selector_.job_id)) {
    captured.is_busy = true;
    return captured;
  }
  const int64_t begin_ns = SteadyNow();
  const Result<CaptureReport> report = TakeCapture(nodes_, {.selector = selector_,
                                                            .window = request_.window,
                                                            .timeout_ns = request_.timeout_ns,
                                                            .allow_unsafe = request_.allow_unsafe,
                                                            .folder = store_.TraceFolder(name),
                                                            .cancelled = &cancelled_});
  if (!report) {
    record.reason = report.error().ToString();
  } else {
    record.world_size = report->result.world_size.value_or(0);
    const Status told = KeepCaptureJson(*report);
    if (!told) captured.problem = told.error().ToString();
    const Status analysed = Analyse(*report, &captured);
    if (analysed) {
      record.outcome = IsPartial(*report) ? Outcome::kPartial : Outcome::kDone;
      if (record.outcome == Outcome::kPartial) record.reason = ReasonOf(report->result);
    } else {
      record.reason = analysed.error().ToString();
    }
  }
  record.took_ns = SteadyNow() - begin_ns;
  return captured;
}

void JobProfiler::Begin() {
  const int64_t now_ns = UnixNow();
  Result<std::string> name = store_.Begin(now_ns);
  if (!name) {
    ++counts_.failed;
    events_.Problem(name.error().ToString());
    return;
  }
  capture_ = std::move(*name);
  cancelled_ = false;
  work_ = std::async(std::launch::async, [this, name = capture_, now_ns] { return CaptureAndAnalyse(name, now_ns); });
}

std::string JobProfiler::Compare(const std::string& reference, const std::string& capture,
                                 comparison::RunProfile after) {
  Result<model::Run> run = input_.Ingest({store_.TraceFolder(reference)}, console_, true);
  if (!run) return {};
  const Result<analysis::AnalysisResult> result = input_.Analyze(&*run);
  if (!result) return {};
  comparison::RunProfile before = comparison::MakeRunProfile(reference, *run, *result, input_.analysis(), {});
  const comparison::Comparison comparison = comparison::Compare(std::move(before), std::move(after), {});
  const std::string path = store_.ComparisonFile(capture);
  const Status written = WriteComparisonPage(comparison, fmt::format("{} against {}", capture, reference), false, path);
  return written ? path : std::string();
}

void JobProfiler::Skip(const char* reason, uint64_t* count) {
  ++*count;
  // A job that is stuck for a night is not news each period.
  if (told_skip_ != reason) events_.Skipped(reason);
  told_skip_ = reason;
}

void JobProfiler::TakeCaptured() {
  Captured captured = work_.get();
  const CaptureRecord& record = captured.record;
  if (captured.is_busy) {
    kept_ = store_.KeepWithin(request_.budget_bytes);  // Removes the empty folder.
    return Skip("busy", &counts_.skipped_busy);
  }
  if (cancelled_ && record.outcome == Outcome::kFailed) {
    kept_ = store_.KeepWithin(request_.budget_bytes);
    return;  // It was called off, and says nothing of the job.
  }
  ++(record.outcome == Outcome::kDone      ? counts_.done
     : record.outcome == Outcome::kPartial ? counts_.partial
                                           : counts_.failed);
  told_skip_.clear();
  last_took_ns_ = record.took_ns;
  if (!record.figures.empty()) last_success_unix_ns_ = record.time_unix_ns;
  const Status kept = store_.Append(record);
  if (!kept) events_.Problem(kept.error().ToString());
  if (!captured.problem.empty()) events_.Problem(captured.problem);
  Judgement judgement = history_.Observe(record);
  events_.Captured(record, judgement.is_warm_up, captured.report);
  for (const auto& change : judgement.recovered) events_.Over("recovered", record.capture, change);
  for (const auto& change : judgement.accepted) events_.Over("accepted", record.capture, change);
  if (judgement.regression) {
    ++regression_count_;
    regression_ = std::move(judgement.regression);
    report_ = captured.report;
    const std::string reference = regression_->reference;
    if (captured.profile && store_.HasTraces(reference)) {
      // A lambda cannot be copied into a thread with what it alone owns: it is shared.
      const auto after = std::make_shared<comparison::RunProfile>(std::move(*captured.profile));
      comparing_ = std::async(std::launch::async, [this, reference, capture = capture_, after] {
        return Compare(reference, capture, std::move(*after));
      });
      return;
    }
    TakeCompared();
  }
  kept_ = store_.KeepWithin(request_.budget_bytes);
}

void JobProfiler::TakeCompared() {
  const std::string comparison = comparing_.valid() ? comparing_.get() : std::string();
  if (regression_) events_.Regressed(capture_, *regression_, report_, comparison);
  regression_.reset();
  kept_ = store_.KeepWithin(request_.budget_bytes);
}

void JobProfiler::WriteMetrics() {
  metrics_written_ns_ = SteadyNow();
  if (request_.metrics_file.empty()) return;
  const std::string text = profile_history::ProfileMetricsText({.job_id = selector_.job_id,
                                                                .now_unix_ns = UnixNow(),
                                                                .counts = counts_,
                                                                .regression_count = history_.regression_count(),
                                                                .last_success_unix_ns = last_success_unix_ns_,
                                                                .last_took_ns = last_took_ns_,
                                                                .kept = kept_,
                                                                .budget_bytes = request_.budget_bytes},
                                                               history_);
  const Status written = WriteOutputFile(request_.metrics_file, text);
  if (!written && !std::exchange(metrics_failed_, true)) events_.Problem(written.error().ToString());
  if (written) metrics_failed_ = false;
}

void JobProfiler::Look(JobState state) {
  bool has_news = metrics_written_ns_ == 0;
  if (IsReady(work_)) {
    TakeCaptured();
    has_news = true;
  }
  if (IsReady(comparing_)) {
    TakeCompared();
    has_news = true;
  }
  const bool is_working = work_.valid() || comparing_.valid();
  const bool has_all =
      request_.capture_count > 0 && counts_.done + counts_.partial + counts_.failed >= request_.capture_count;
  if (!has_all) {
    switch (schedule_.Look(SteadyNow(), state, is_working)) {
      case ScheduleStep::kNothing: break;
      case ScheduleStep::kStart: Begin(); break;
      case ScheduleStep::kSkipSilent:
        Skip("silent", &counts_.skipped_silent);
        has_news = true;
        break;
      case ScheduleStep::kSkipOverrun:
        Skip("overrun", &counts_.skipped_overrun);
        has_news = true;
        break;
    }
  }
  if (has_news || SteadyNow() - metrics_written_ns_ >= kMetricsEveryNs) WriteMetrics();
}

void JobProfiler::End() {
  CallOff();
  if (work_.valid()) TakeCaptured();
  if (comparing_.valid()) TakeCompared();
  events_.End(counts_, regression_count_, kept_, store_.folder());
  RemoveMetrics();
}

// A job that has ended raises no alerts any more, nor does one that is not watched to its end.
void JobProfiler::RemoveMetrics() {
  if (request_.metrics_file.empty()) return;
  std::error_code ignored;
  std::filesystem::remove(request_.metrics_file, ignored);
}

}  // namespace lockstep::cli
