#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "base/calendar.h"
#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/control/client/dynolog_capture.h"
#include "node/control/client/dynolog_client.h"
#include "node/control/client/job_capture.h"
#include "node/control/client/trace_names.h"
#include "node/control/discovery/hosts.h"
#include "present/report/report.h"
#include "programs/cli/capture/capture_display.h"
#include "programs/cli/capture/capture_output.h"
#include "programs/cli/cli.h"
#include "programs/cli/node_flags.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/terminal/interrupt.h"

namespace lockstep::cli {
namespace {

/// `lockstep capture`: traces a running job on all its nodes, brings the traces here and analyses them.
class CaptureCommand : public Subcommand {
 public:
  const char* name() const override { return "capture"; }
  const char* purpose() const override { return "Trace a running PyTorch job on every node, and say what it does"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadWindow();
  Status ReadStart();
  Status ReadSelection();
  Status ReadNodes();
  Status ReadDynologNodes();
  Result<std::string> MakeFolder(const std::string& folder) const;
  Result<CaptureReport> CaptureOnce(const std::string& folder, Console& console);
  /// Reads the traces that were kept; what is damaged is noted, and with `analyse` the first screen is printed.
  Status ReadTraces(std::vector<CaptureReport>& reports, bool analyse, Console& console);

  std::string dynolog_hosts_;
  std::vector<control::DynologNode> dynolog_nodes_;  ///< Empty: the nodes' daemons are ours.
  NodeFlags node_flags_;

  std::vector<int32_t> pids_;
  std::string ranks_;
  std::string duration_ = "500ms";
  int32_t iterations_ = 0;
  std::string roundup_ = "auto";
  std::optional<int64_t> start_iteration_;
  std::string warmup_;
  std::string start_in_ = "auto";
  std::string timeout_;
  uint32_t repeat_ = 1;
  std::string every_;
  int64_t every_ns_ = 0;
  std::string folder_;
  bool no_analyze_ = false;
  bool no_compress_ = false;
  bool json_ = false;
  bool quiet_ = false;
  control::JobCaptureRequest request_;
  RunInput input_;
};

// Steps of a large model take half a minute: a multiple of more would be waited for too long before anything is known.
constexpr int32_t kFirstRoundup = 5;

constexpr const char* kCaptureFooter =
    "Traces processes that were started with KINETO_USE_DAEMON=1 on a node with\n"
    "lockstepd (lockstep run --with-daemon does both). The job itself needs no\n"
    "change. Ctrl-C cancels the capture on all nodes and keeps the traces that\n"
    "have arrived.\n"
    "Exit status: 0 done; 1 nothing was captured; 2 misused; 4 partial: a rank or a\n"
    "node is missing, the rest was kept.\n"
    "\n"
    "Examples:\n"
    "  lockstep capture                            all ranks on this node, 500 ms\n"
    "  lockstep capture --job 123 --iterations 5   the same five steps on all nodes\n"
    "  lockstep capture --ranks 0,3 --duration 2s --stacks -o traces/\n"
    "  lockstep capture --repeat 10 --every 5m     ten windows, five minutes apart";

std::optional<int32_t> PlainNumber(const std::string& text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void CaptureCommand::Declare(CLI::App& app) {
  node_flags_.Declare(app);
  app.add_option("--dynolog", dynolog_hosts_,
                 "Use these nodes' Dynolog, not lockstepd. They must share the folder of -o. Dynolog\nselects by "
                 "SLURM's job number (--job) and pids, not by ranks")
      ->type_name("HOSTS[:PORT]");
  app.option_defaults()->group("Which processes");
  app.add_option("--pid", pids_, "Only these processes and their descendants: torchrun's pid selects its ranks")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(Checked(CLI::Range(1, INT32_MAX)));
  app.add_option("--ranks", ranks_, "Only these ranks, such as 0,3,8-15")->type_name("LIST");

  app.option_defaults()->group("Window");
  app.add_option("--duration", duration_, "How long, such as 500ms or 2s (500ms)")->type_name("TIME");
  app.add_option("--iterations", iterations_, "Capture this many training steps instead, the same on all ranks")
      ->type_name("N")
      ->check(Checked(CLI::Range(1, 100'000)));
  app.add_option("--roundup", roundup_,
                 "With --iterations: begin at a multiple of N (auto: as large as this job's ranks need)")
      ->type_name("N|auto");
  app.add_option("--start-iteration", start_iteration_, "With --iterations: begin at this step of the job")
      ->type_name("N")
      ->check(Checked(CLI::Range(int64_t{0}, INT64_MAX)));
  app.add_option("--warmup", warmup_,
                 "Let the profiler warm up for this long first, in whole seconds (5s with a GPU, else\n1s); with "
                 "--iterations a number of steps (0)")
      ->type_name("TIME|N");
  app.add_option("--start-in", start_in_,
                 "Begin on all nodes at the same time, this long from now; auto: as soon as every rank\ncan take part, "
                 "about 13 s with GPUs; now: each process by itself, when it next asks\nfor work (auto)")
      ->type_name("TIME|auto|now");
  app.add_option("--repeat", repeat_, "Capture this many times (1)")
      ->type_name("N")
      ->check(Checked(CLI::Range(1u, 100'000u)));
  app.add_option("--every", every_, "With --repeat: time from one start to the next")->type_name("TIME");

  app.option_defaults()->group("Which processes");
  app.add_flag("--allow-unsafe", request_.allow_unsafe,
               "Also trace processes that Kineto may crash: PyTorch before 2.14, not under 'lockstep run'");

  app.option_defaults()->group("What is recorded");
  app.add_flag("--record-shapes", request_.options.record_shapes, "Shapes of operators' inputs");
  app.add_flag("--memory", request_.options.memory, "Allocations");
  app.add_flag("--stacks", request_.options.stacks, "Python stacks; slows the job down while it is traced");
  app.add_flag("--flops", request_.options.flops, "FLOPs of operators that have a formula");
  app.add_flag("--modules", request_.options.modules, "Which modules operators belong to");
  app.add_option("--activities", request_.options.activities,
                 "Record only these of Kineto's activities, such as cpu_op,kernel,gpu_memcpy")
      ->type_name("LIST")
      ->delimiter(',');

  app.option_defaults()->group("Output");
  app.add_option("-o,--output", folder_, "Folder for the traces, created if missing (./lockstep-capture-TIME)")
      ->type_name("DIR");
  app.add_flag("--no-analyze", no_analyze_, "Fetch and check the traces, without analysis");
  app.add_flag("--no-compress", no_compress_, "Write .json, not .json.gz");
  app.add_flag("--json", json_,
               "Print what was captured as one JSON object (lockstep.capture/1, docs/json.md);\nfor the analysis: "
               "lockstep analyze DIR --json");
  app.add_flag("-q,--quiet", quiet_, "No progress on standard error");
  app.add_option("--timeout", timeout_,
                 "Give up on a process whose trace is this late (5m; with --iterations 15m, from the\nbeginning)")
      ->type_name("TIME");
  app.footer(kCaptureFooter);
}

Status CaptureCommand::ReadWindow() {
  control::CaptureWindow& window = request_.window;
  if (iterations_ > 0) {
    if (duration_ != "500ms") return Misuse("--duration and --iterations exclude each other");
    window.mode = control::CaptureWindow::Mode::kIterations;
    window.iterations = iterations_;
    window.start_iteration = start_iteration_;
    request_.choose_roundup = roundup_ == "auto";
    window.roundup = kFirstRoundup;
    if (!request_.choose_roundup) {
      const auto number = PlainNumber(roundup_);
      if (!number || *number < 1 || *number > 1'000'000)
        return Misuse(fmt::format("--roundup: '{}' is not a number from 1 to 1000000, nor auto", roundup_));
      window.roundup = *number;
    }
    if (!warmup_.empty()) {
      const auto number = PlainNumber(warmup_);
      if (!number || *number < 0 || *number > 100'000)
        return Misuse(fmt::format("--warmup: with --iterations a number of steps, not '{}'", warmup_));
      window.warmup_iterations = *number;
    }
    return {};
  }
  if (roundup_ != "auto" || start_iteration_) return Misuse("--roundup and --start-iteration need --iterations");
  ASSIGN_OR_RETURN(window.duration_ns, ParseTime(duration_, "--duration"));
  if (window.duration_ns < kMillisecondNs || window.duration_ns > 3600 * kSecondNs ||
      window.duration_ns % kMillisecondNs != 0) {
    return Misuse(fmt::format("--duration: {} is not from 1ms to 60m, in whole milliseconds", duration_));
  }
  if (!warmup_.empty()) {
    ASSIGN_OR_RETURN(const int64_t warmup_ns, ParseTime(warmup_, "--warmup"));
    if (warmup_ns % kSecondNs != 0 || warmup_ns > 600 * kSecondNs)
      return Misuse(fmt::format("--warmup: {} is not from 0s to 10m, in whole seconds", warmup_));
    window.warmup_ns = warmup_ns;
  }
  return {};
}

Status CaptureCommand::ReadStart() {
  if (start_in_ == "now") {
    request_.start = control::StartMode::kNow;
  } else if (start_in_ != "auto") {
    request_.start = control::StartMode::kLead;
    ASSIGN_OR_RETURN(request_.lead_ns, ParseTime(start_in_, "--start-in"));
    if (request_.lead_ns > 24 * 3600 * kSecondNs) return Misuse("--start-in: at most a day");
  }
  if (iterations_ > 0 && start_in_ != "auto")
    return Misuse("--start-in is for --duration; with --iterations ranks begin at one step");
  const char* usual = iterations_ > 0 ? "15m" : "5m";
  ASSIGN_OR_RETURN(request_.timeout_ns, ParseTime(timeout_.empty() ? usual : timeout_, "--timeout"));
  if (request_.timeout_ns < kSecondNs) return Misuse("--timeout: at least 1s");
  if (!every_.empty()) {
    if (repeat_ < 2) return Misuse("--every needs --repeat: how often");
    ASSIGN_OR_RETURN(every_ns_, ParseTime(every_, "--every"));
  }
  return {};
}

Status CaptureCommand::ReadSelection() {
  control::CaptureSelector& selector = request_.selector;
  selector.pids = pids_;
  if (!ranks_.empty()) {
    ASSIGN_OR_RETURN(const auto ranges, ParseRanges(ranks_, "--ranks"));
    for (const auto& [first, last] : ranges) {
      if (last > INT32_MAX) return Misuse(fmt::format("--ranks: no rank is as large as {}", last));
      selector.ranks.emplace_back(static_cast<int32_t>(first), static_cast<int32_t>(last));
    }
  }
  for (const std::string& activity : request_.options.activities) {
    if (activity.empty() || activity.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
      return Misuse(fmt::format("--activities: '{}' is none of Kineto's names, such as cpu_op or kernel", activity));
  }
  return {};
}

// "HOST[:PORT],...", hosts as lists too.
Status CaptureCommand::ReadDynologNodes() {
  std::string hosts = dynolog_hosts_;
  uint16_t port = control::DynologNode().port;
  if (const size_t colon = hosts.rfind(':'); colon != std::string::npos) {
    const auto number = PlainNumber(hosts.substr(colon + 1));
    if (!number || *number < 1 || *number > 65535)
      return Misuse(fmt::format("--dynolog: '{}' is not a port", hosts.substr(colon + 1)));
    port = static_cast<uint16_t>(*number);
    hosts.resize(colon);
  }
  auto names = control::ExpandHostlist(hosts);
  if (!names) return Misuse(fmt::format("--dynolog: {}", names.error().message));
  for (std::string& name : *names) dynolog_nodes_.push_back({std::move(name), port});
  return {};
}

Status CaptureCommand::ReadNodes() {
  request_.selector.job_id = node_flags_.job();
  if (!dynolog_hosts_.empty()) return ReadDynologNodes();
  ASSIGN_OR_RETURN(const jobs::Nodes nodes, node_flags_.Find());
  request_.nodes = nodes.endpoints;
  request_.nodes_are_whole_job = nodes.is_whole_job;
  request_.parallel = nodes.parallel;
  request_.selector.job_id = nodes.job_id;
  return {};
}

Result<std::string> CaptureCommand::MakeFolder(const std::string& folder) const {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return Error{error == std::errc::permission_denied ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
                 fmt::format("cannot be made: {}", error.message()), folder};
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return Error{ErrorCode::kPermissionDenied, "cannot be written to; name another with -o", folder};
  return folder;
}

Result<CaptureReport> CaptureCommand::CaptureOnce(const std::string& folder, Console& console) {
  CaptureReport report;
  ASSIGN_OR_RETURN(report.folder, MakeFolder(folder));
  CaptureDisplay display(console.err, console.err_is_terminal, console.Width(), quiet_);
  report.request = request_;
  report.request.folder = report.folder;
  report.request.compress = !no_compress_;
  report.request.cancelled = &InterruptGuard::interrupted();
  report.request.on_progress = [&](const control::JobProgress& progress) { display.Update(progress); };
  auto result = dynolog_nodes_.empty() ? control::CaptureJob(report.request)
                                       : control::CaptureThroughDynolog(report.request, dynolog_nodes_);
  report.request.on_progress = {};
  display.Finish();
  if (!result) {
    std::error_code ignored;
    std::filesystem::remove(report.folder, ignored);  // Only if it is empty.
    return std::move(result).error();
  }
  report.result = std::move(*result);
  return report;
}

Status CaptureCommand::ReadTraces(std::vector<CaptureReport>& reports, bool analyse, Console& console) {
  std::vector<std::string> files;
  for (CaptureReport& report : reports) {
    report.damaged.assign(report.result.targets.size(), "");
    for (const control::JobTarget& target : report.result.targets) {
      if (target.kept()) files.push_back(report.folder + '/' + target.file);
    }
  }
  if (files.empty()) return {};
  Result<model::Run> run = input_.Ingest(files, console, quiet_);
  for (CaptureReport& report : reports) {
    for (size_t i = 0; i < report.result.targets.size(); ++i) {
      const control::JobTarget& target = report.result.targets[i];
      if (!target.kept()) continue;
      if (!run) report.damaged[i] = run.error().message;
      if (!run) continue;
      for (const model::LedgerEntry& entry : run->ledger.entries()) {
        // A window without an event, one of several, is set aside as a conflict; it is sound all the same.
        const bool is_damage = entry.severity == model::Severity::kError && entry.code != "rank_conflict";
        if (is_damage && entry.source == report.folder + '/' + target.file) report.damaged[i] = entry.message;
      }
    }
  }
  if (!analyse || !run) return {};
  ASSIGN_OR_RETURN(const analysis::AnalysisResult result, input_.Analyze(&*run));
  report::TextOptions text;
  text.width = console.Width();
  text.colour = console.UseColour(ColourMode::kAuto);
  text.unicode = LocaleIsUtf8();
  console.out << '\n';
  report::WriteText(*run, result, text, console.out);
  return {};
}

Result<int> CaptureCommand::Run(Console& console) {
  RETURN_IF_ERROR(ReadWindow());
  RETURN_IF_ERROR(ReadStart());
  RETURN_IF_ERROR(ReadSelection());
  RETURN_IF_ERROR(ReadNodes());
  using Clock = std::chrono::steady_clock;
  const int64_t now_ns = UnixNow();
  const std::string folder = folder_.empty() ? "lockstep-capture-" + UtcName(now_ns) : folder_;

  std::vector<CaptureReport> reports;
  {
    const InterruptGuard guard;
    const std::atomic<bool>& interrupted = InterruptGuard::interrupted();
    auto next = Clock::now();
    for (uint32_t i = 0; i < repeat_ && !interrupted; ++i) {
      while (!interrupted && Clock::now() < next) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (interrupted) break;
      next = std::max(next + std::chrono::nanoseconds(every_ns_), Clock::now());
      if (repeat_ > 1 && !quiet_) console.err << fmt::format("capture {} of {}", i + 1, repeat_) << std::endl;
      auto report = CaptureOnce(repeat_ > 1 ? fmt::format("{}/{:03}", folder, i + 1) : folder, console);
      if (!report) {
        // The first says that something is wrong; a later one that the job has ended, most likely.
        if (reports.empty()) return std::move(report).error();
        console.err << "lockstep: " << report.error().ToString() << std::endl;
        reports.back().result.cancelled = true;
        break;
      }
      RETURN_IF_ERROR(KeepCaptureJson(*report));
      if (!json_) WriteCaptureText(*report, console.out);
      console.out.flush();
      reports.push_back(std::move(*report));
    }
  }
  RETURN_IF_ERROR(ReadTraces(reports, !no_analyze_ && !json_, console));
  size_t kept = 0;
  bool partial = false;
  for (const CaptureReport& report : reports) {
    kept += report.result.kept_count();
    partial = partial || IsPartial(report);
    for (size_t i = 0; !json_ && i < report.damaged.size(); ++i) {
      if (report.damaged[i].empty()) continue;
      console.err << fmt::format("{}: the trace is damaged: {}\n",
                                 TargetName(report.result.targets[i], report.result.nodes), report.damaged[i]);
    }
  }
  if (json_) WriteCaptureJson(reports, console.out);
  return kept == 0 ? kFailed : partial ? kPartial : kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeCapture() { return std::make_unique<CaptureCommand>(); }

}  // namespace lockstep::cli
