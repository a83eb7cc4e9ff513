#include "present/live_site/capture_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "analysis/analysis_result.h"
#include "analysis/analyze.h"
#include "base/calendar.h"
#include "base/nanoseconds.h"
#include "base/now.h"
#include "ingest/job/ingest_run.h"
#include "node/control/client/trace_names.h"
#include "present/report/job_facts.h"
#include "present/report/verdict.h"
#include "present/serve/report_site.h"

namespace lockstep::live_site {
namespace {

constexpr uint64_t kCacheBytes = uint64_t{64} << 20;  // Of each report; there may be several.

/// A run that was analysed and its page; the page borrows the rest.
struct CapturedReport {
  CapturedReport(model::Run run_, analysis::AnalysisResult result_, analysis::AnalysisOptions options_, bool partial)
      : run(std::move(run_)),
        result(std::move(result_)),
        options(std::move(options_)),
        site({run, result, options, partial}, kCacheBytes) {}
  CapturedReport(const CapturedReport&) = delete;
  CapturedReport& operator=(const CapturedReport&) = delete;

  const model::Run run;
  const analysis::AnalysisResult result;
  const analysis::AnalysisOptions options;
  serve::ReportSite site;
};

/// About: what is there in great numbers, with their share of the analysis and the page's blocks.
uint64_t BytesOf(const model::Run& run) {
  constexpr uint64_t kEventBytes = 48;  // Twice that of its columns.
  uint64_t bytes = kCacheBytes;
  for (const model::RankTrace& rank : run.ranks) {
    bytes += rank.complete_event_count * kEventBytes + rank.collectives.size() * sizeof(model::CollectiveRecord) +
             rank.synchronisations.size() * sizeof(model::SyncRecord) +
             rank.shapes.size() * sizeof(model::OperatorShape) + rank.memory.size() * kEventBytes;
  }
  return bytes;
}

/// A new folder in `parent`, called as `lockstep capture` calls its own.
Result<std::string> MakeFolder(const std::string& parent) {
  const std::string name = parent + "/lockstep-capture-" + UtcName(UnixNow());
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  for (int i = 1; i < 1000 && !error; ++i) {
    const std::string folder = i == 1 ? name : fmt::format("{}-{}", name, i);
    if (std::filesystem::create_directory(folder, error)) return folder;
  }
  return Error{error == std::errc::permission_denied ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
               fmt::format("no folder for the traces can be made: {}; name another with --output",
                           error ? error.message() : "too many there"),
               parent};
}

ActionState StateOf(const control::JobProgress& progress) {
  using Phase = control::JobProgress::Phase;
  using control::TargetState;
  if (progress.phase != Phase::kFollowing && progress.phase != Phase::kDone) return ActionState::kWaiting;
  const auto any = [&](auto holds) {
    return std::any_of(progress.targets.begin(), progress.targets.end(),
                       [&](const control::JobTarget& target) { return holds(target.state); });
  };
  if (any([](TargetState s) {
        return s == TargetState::kWarming || s == TargetState::kCollecting || s == TargetState::kWriting;
      })) {
    return ActionState::kRunning;
  }
  return any([](TargetState s) { return !control::IsFinal(s); }) ? ActionState::kWaiting : ActionState::kFetching;
}

size_t KeptCount(const std::vector<control::JobTarget>& targets) {
  return static_cast<size_t>(
      std::count_if(targets.begin(), targets.end(), [](const auto& target) { return target.kept(); }));
}

/// Why nothing came, in the words of the first process or node that says so.
std::string WhyNothing(const control::JobCaptureResult& result) {
  for (const control::JobTarget& target : result.targets) {
    if (!target.fetch_error.empty()) return target.fetch_error;
    if (!target.reason.empty()) return target.reason;
  }
  for (const control::JobNodeState& node : result.nodes) {
    if (!node.problem.empty()) return node.host + ": " + node.problem;
  }
  return "no process wrote a trace";
}

std::string Lacks(const control::JobCaptureResult& result) {
  if (!result.missing_ranks.empty()) {
    return fmt::format("{} ranks are missing: {}", result.missing_ranks.size(), result.missing_reason);
  }
  if (result.kept_count() < result.targets.size()) {
    return fmt::format("{} of {} traces came: {}", result.kept_count(), result.targets.size(), WhyNothing(result));
  }
  return "a node did not answer, or ranks do not show the same steps";
}

Result<Pages> Analyze(const CaptureSetup& setup, const std::string& folder, const control::JobCaptureResult& captured,
                      ActionDesk::Desk& desk) {
  std::vector<std::string> files;
  for (const control::JobTarget& target : captured.targets) {
    if (target.kept()) files.push_back(folder + '/' + target.file);
  }
  ingest::IngestOptions ingest;
  ingest.thread_count = setup.analysis.thread_count;
  ingest.cancelled = &desk.cancelled();
  ASSIGN_OR_RETURN(model::Run run, ingest::IngestRun(files, ingest));
  ASSIGN_OR_RETURN(analysis::AnalysisResult result, analysis::Analyze(&run, setup.analysis, {}));
  const bool partial = ingest::IsPartial(run) || report::FactsOf(run).missing_rank_count > 0;
  const auto verdict = report::VerdictFindings(result.findings);
  const std::string sentence = verdict.empty() ? report::kNoVerdict : verdict.front()->title;
  desk.Change([&](Action& action) {
    action.sentence = sentence;
    action.is_partial = partial || captured.partial();
    if (captured.partial()) action.reason = Lacks(captured);
  });
  desk.Hold(BytesOf(run));
  const auto report = std::make_shared<CapturedReport>(std::move(run), std::move(result), setup.analysis, partial);
  return Pages([report](const http::Request& request) { return report->site.Answer(request); });
}

}  // namespace

Action CaptureAction(const CaptureWish& wish) {
  Action action;
  action.kind = ActionKind::kCapture;
  action.job_id = wish.job_id;
  for (const auto& [first, last] : wish.selector.ranks) action.ranks.push_back(first);
  if (wish.window.mode == control::CaptureWindow::Mode::kIterations) {
    action.iterations = wish.window.iterations;
  } else {
    action.duration_ns = wish.window.duration_ns;
  }
  return action;
}

ActionDesk::Work CaptureWork(const CaptureSetup& setup, CaptureWish wish) {
  return [&setup, wish = std::move(wish)](ActionDesk::Desk& desk) -> Result<Pages> {
    ASSIGN_OR_RETURN(const std::string folder, MakeFolder(setup.parent));
    control::JobCaptureRequest request;
    request.nodes = setup.nodes;
    request.nodes_are_whole_job = setup.nodes_are_whole_job;
    request.parallel = setup.parallel;
    request.selector = wish.selector;
    request.window = wish.window;
    request.options = wish.options;
    request.allow_unsafe = wish.allow_unsafe;
    request.folder = folder;
    request.timeout_ns = (wish.window.mode == control::CaptureWindow::Mode::kIterations ? 900 : 300) * kSecondNs;
    request.cancelled = &desk.cancelled();
    request.on_progress = [&desk](const control::JobProgress& progress) {
      desk.Change([&](Action& action) {
        action.state = StateOf(progress);
        action.target_count = progress.targets.size();
        action.kept_count = KeptCount(progress.targets);
      });
    };
    Result<control::JobCaptureResult> captured = setup.capture(request);
    if (!captured || captured->kept_count() == 0) {
      std::error_code ignored;
      std::filesystem::remove(folder, ignored);  // Only if it is empty.
    }
    if (!captured) return std::move(captured).error();
    if (captured->kept_count() == 0) {
      return Error{captured->cancelled ? ErrorCode::kCancelled : ErrorCode::kFailedPrecondition, WhyNothing(*captured)};
    }
    desk.Change([&](Action& action) {
      action.folder = folder;
      action.kept_count = captured->kept_count();
      action.target_count = captured->targets.size();
      action.state = ActionState::kAnalysing;
    });
    if (setup.keep_record) RETURN_IF_ERROR(setup.keep_record(request, *captured));
    return Analyze(setup, folder, *captured, desk);
  };
}

}  // namespace lockstep::live_site
