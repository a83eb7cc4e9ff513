#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/host_name.h"
#include "base/nearest.h"
#include "inside/launch/debug_environment.h"
#include "inside/launch/rank_environment.h"
#include "node/local/kineto_config.h"
#include "node/local/kineto_sockets.h"
#include "node/local/private_daemon.h"
#include "node/local/runtime_folder.h"
#include "programs/cli/cli.h"
#include "programs/cli/run/foreground.h"
#include "programs/cli/run/launcher.h"
#include "programs/cli/run/profile_flags.h"
#include "programs/cli/run/profile_run.h"
#include "programs/cli/run/python_site.h"
#include "programs/cli/run/run_logs.h"
#include "programs/cli/run/stage_summary.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/workload_flag.h"

namespace lockstep::cli {
namespace {

/// `lockstep run [flags] -- CMD...`: CMD with what lets its PyTorch processes be captured, and on request a daemon for
/// as long as it runs. Problems are reported, and CMD runs anyway. With --profile nsys or ncu: the chosen ranks under
/// that profiler, the others as they are.
class RunCommand : public Subcommand {
 public:
  const char* name() const override { return "run"; }
  const char* purpose() const override {
    return "Start a training job, to be captured while it runs or with ranks under nsys or ncu";
  }
  void Declare(CLI::App& app) override;
  bool TakesCommandLine() const override { return true; }
  void SetCommandLine(std::vector<std::string> words) override { after_dashes_ = std::move(words); }
  Result<int> Run(Console& console) override;

 private:
  Status ReadFlags();
  Status RefuseKinetoFlags() const;
  Status PrepareDebugging();
  /// Of a rank that is not prepared for Kineto; nullopt: it is.
  Result<std::optional<int>> RunOtherwise(Console& console);
  /// What can be asked for a capture of this job, on one line; told by one rank only.
  void TellHow(const local::NodeDaemon& daemon, Console& console) const;
  /// Nullopt: there is none, and the job runs without.
  Result<std::optional<local::NodeDaemon>> FindDaemon(const Result<std::string>& folder, Console& console);
  Status CheckSocketFolder(Console& console);
  void PrepareKineto(const Result<std::string>& folder, Console& console, ForegroundCommand* command) const;
  /// What Python processes are to do is added to `command`; what `recording` holds has to live as long as it runs.
  void PreparePython(const Result<std::string>& folder, Console& console, StepRecording* recording,
                     ForegroundCommand* command) const;
  /// Where the recordings of stages stay; empty: nowhere.
  std::string KeptFolder() const;
  void SummarizeStages(const StepRecording& recording, const Result<int>& status, Console& console) const;
  void Tell(Console& console, const std::string& text) const;

  const CLI::App* app_ = nullptr;
  ProfileFlags profile_flags_;
  RunLogs logs_;
  std::optional<std::vector<std::string>> after_dashes_;
  std::vector<std::string> arguments_;
  std::string socket_folder_;
  std::string interval_ = "1s";
  int64_t poll_seconds_ = 1;
  bool with_daemon_ = false;
  bool requires_daemon_ = false;
  std::string debug_folder_;
  std::vector<std::pair<std::string, std::string>> debug_variables_;
  bool hang_dumps_ = false;
  bool kineto_alone_ = false;
  std::string stages_;  ///< "true", or the folder; empty: not asked for.
  std::vector<std::string> workload_words_;
  model::Workload workload_;
  bool quiet_ = false;
};

constexpr int64_t kMaxPollSeconds = 3600;

constexpr const char* kRunFooter =
    "Where the node's lockstepd answers, CMD gets KINETO_USE_DAEMON=1, which makes PyTorch's own\n"
    "profiler library register with it, and a base configuration for that library\n"
    "(KINETO_CONFIG) unless it has one. 'lockstep capture' can then trace it at any time. If\n"
    "something cannot be prepared, a message on standard error says so, and CMD runs all the\n"
    "same. Signals go on to CMD.\n"
    "With --logs, CMD's output goes to one log per rank; rank 0's also goes to the console.\n"
    "With --profile nsys or ncu, put this command behind the launcher, once for each rank. The\n"
    "chosen ranks run under the profiler, each with a report and a manifest (docs/launch.md); in\n"
    "the other ranks this process becomes CMD.\n"
    "Exit status: that of CMD; 128 + N when signal N ended it; 127 there is no CMD, 126 it\n"
    "cannot be run; 1 failed and 2 misused, before CMD was started.\n"
    "\n"
    "Examples:\n"
    "  lockstep run --with-daemon -- torchrun --nproc-per-node 8 train.py\n"
    "  lockstep run --stages -- torchrun --nproc-per-node 8 train.py\n"
    "  lockstep run --stages=stages --workload model=gpt2 --workload batch=32 -- torchrun train.py\n"
    "  srun lockstep run --with-daemon -- python train.py\n"
    "  srun lockstep run --profile nsys --ranks per-node:1 -o profile -- python train.py\n"
    "  torchrun --nproc-per-node 8 --no-python lockstep run --profile nsys --ranks 0,3 -- python train.py\n"
    "  torchrun --nproc-per-node 8 --no-python lockstep run --rank-logs logs/ -- python train.py";

void RunCommand::Declare(CLI::App& app) {
  app_ = &app;
  app.prefix_command();  // All that follows the first word that is not a flag of ours is CMD's.
  app.option_defaults()->group("Kineto");
  app.add_flag("--with-daemon", with_daemon_,
               "Start a daemon if the node has none; it ends with the last job that uses it");
  app.add_flag("--require-daemon", requires_daemon_, "Do not start CMD when no daemon answers");
  app.add_option("--interval", interval_, "How often the processes ask the daemon for a capture, in whole seconds (1s)")
      ->type_name("TIME");
  app.add_option("--socket-dir", socket_folder_,
                 "Use a daemon's socket in this folder, for containers with their own network; at most 54 characters, "
                 "the same path on both sides")
      ->type_name("DIR");
  app.option_defaults()->group("Options");
  app.add_flag(
      "--hang-dumps", hang_dumps_,
      "Make every Python process of CMD that has a rank answer 'lockstep hang' with its flight record and stacks");
  app.add_flag(
      "--no-step-captures", kineto_alone_,
      "Use Kineto alone for captures. Without this flag, processes of CMD that train with PyTorch are traced from step "
      "to step by lockstep's own tracer, which avoids the way in which Kineto can crash them (docs/capture.md)");
  app.add_flag(
      "--stages,--steps", stages_,
      "Mark the stages of each step (input, forward, backward, waiting for collectives, optimizer, ...) in every "
      "Python process of CMD that trains with PyTorch: for lockstepd's metrics, lockstep top, and what "
      "'lockstep stages' says, which is printed at the end. --stages=DIR keeps the recordings, with a summary.json");
  app.add_option("--workload", workload_words_, std::string("With --stages=DIR: ") + kWorkloadFlagHelp)
      ->type_name("KEY=VALUE");
  app.add_option("--debug", debug_folder_,
                 "Make all ranks write the evidence of a hang into this folder: NCCL's log, flight records at a "
                 "time-out. Also turn on PyTorch's own checks. Variables that are set already are kept")
      ->type_name("DIR");
  profile_flags_.Declare(app);
  logs_.Declare(app);
  app.option_defaults()->group("Options");
  app.add_flag("-q,--quiet", quiet_, "Print only problems on standard error");
  app.footer(kRunFooter);
}

Status RunCommand::ReadFlags() {
  arguments_ = app_->remaining();
  if (after_dashes_) {
    if (!arguments_.empty()) arguments_.emplace_back("--");  // Those were CMD's own: run sh -c '...' -- ARG
    arguments_.insert(arguments_.end(), after_dashes_->begin(), after_dashes_->end());
  }
  if (arguments_.empty()) return Misuse("run needs a command: lockstep run [flags] -- CMD [ARG...]");
  if (arguments_.front().starts_with("-")) {
    const std::string flag = arguments_.front().substr(0, arguments_.front().find('='));
    std::vector<std::string> known;
    for (const CLI::Option* option : app_->get_options([](const CLI::Option*) { return true; })) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    return Misuse(fmt::format("unknown flag '{}'{}", flag, DidYouMean(flag, known)));
  }
  ASSIGN_OR_RETURN(workload_, ReadWorkloadFlags(workload_words_));
  if (!workload_.empty() && KeptFolder().empty()) {
    return Misuse("--workload is kept in the summary of --stages=DIR, which is not given");
  }
  const std::string_view text = interval_;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), poll_seconds_);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (error != std::errc() || (unit != "s" && !unit.empty()) || poll_seconds_ < 1 || poll_seconds_ > kMaxPollSeconds) {
    return Misuse(fmt::format("--interval {}: expected whole seconds from 1s to {}s; Kineto cannot ask more often",
                              interval_, kMaxPollSeconds));
  }
  return {};
}

void RunCommand::Tell(Console& console, const std::string& text) const {
  console.err << "lockstep: " << text << std::endl;  // Before CMD prints.
}

Status RunCommand::CheckSocketFolder(Console& console) {
  const char* inherited = std::getenv("KINETO_IPC_SOCKET_DIR");
  if (socket_folder_.empty() && inherited != nullptr) socket_folder_ = inherited;
  if (socket_folder_.empty()) return {};
  const Status ready = local::PrepareSocketFolder(socket_folder_);
  if (ready) return {};
  if (ready.error().code == ErrorCode::kInvalidArgument) return ready.error();
  Tell(console, fmt::format("{}; it is not used", ready.error().ToString()));
  socket_folder_.clear();  // Without it the job runs; with a folder that cannot be used Kineto complains for ever.
  return {};
}

Result<std::optional<local::NodeDaemon>> RunCommand::FindDaemon(const Result<std::string>& folder, Console& console) {
  Result<local::NodeDaemon> daemon = folder.has_value() || !with_daemon_ ? local::AnsweringDaemon() : folder.error();
  if (with_daemon_ && folder) {
    if (StartsOnOtherNodes(arguments_)) {
      Tell(console,
           fmt::format("{0} starts its processes on other nodes, and each of those needs a daemon: {0} ... lockstep "
                       "run --with-daemon -- CMD; the one here reaches this node's processes only",
                       arguments_[0]));
    }
    daemon = local::ObtainDaemon({.runtime_folder = *folder, .socket_folder = socket_folder_});
  }
  if (!daemon) {
    if (requires_daemon_) return daemon.error();
    if (with_daemon_) {
      Tell(console, fmt::format("runs without a daemon: {}", daemon.error().ToString()));
    } else if (!quiet_ && RankFromEnvironment().value_or(0) == 0) {
      Tell(console, "no lockstepd answers on this node, so nothing can be captured; --with-daemon starts one");
    }
    return std::optional<local::NodeDaemon>();
  }
  if (!daemon->note.empty()) Tell(console, daemon->note);
  const std::string served = local::SocketFolderOf(daemon->status);
  if (socket_folder_.empty()) {
    socket_folder_ = served;
  } else if (std::ranges::find(daemon->status.kineto_sockets,
                               fmt::format("{}/{}", socket_folder_, local::kKinetoName)) ==
             daemon->status.kineto_sockets.end()) {
    const std::string message =
        fmt::format("the daemon on this node (process {}) has no socket in {}; it has {}", daemon->status.daemon_pid,
                    socket_folder_, fmt::join(daemon->status.kineto_sockets, ", "));
    if (requires_daemon_) return Error{ErrorCode::kFailedPrecondition, message};
    Tell(console, message);
  }
  return std::optional<local::NodeDaemon>(std::move(*daemon));
}

void RunCommand::TellHow(const local::NodeDaemon& daemon, Console& console) const {
  if (quiet_ || RankFromEnvironment().value_or(0) != 0) return;
  // Ours is an ancestor of all processes of CMD, so it selects them.
  Tell(console, fmt::format("to trace this job while it runs: lockstep capture --pid {} ({} daemon, process {})",
                            ::getpid(), daemon.started ? "started a" : "the node's", daemon.status.daemon_pid));
}

Status RunCommand::RefuseKinetoFlags() const {
  for (const char* name : {"--with-daemon", "--require-daemon", "--interval", "--socket-dir", "--hang-dumps",
                           "--no-step-captures", "--stages", "--workload"}) {
    if (app_->get_option(name)->count() > 0) return Misuse(fmt::format("{} is for --profile kineto", name));
  }
  return {};
}

Status RunCommand::PrepareDebugging() {
  if (debug_folder_.empty()) return {};
  std::error_code failed;
  std::filesystem::create_directories(debug_folder_, failed);
  const std::string folder = std::filesystem::absolute(debug_folder_, failed).string();  // CMD may go elsewhere.
  if (failed) return Error{.code = ErrorCode::kIo, .message = failed.message(), .file = debug_folder_};
  const launch::Environment environment = launch::Environment::Own();
  debug_variables_ = launch::DebugVariables(folder, environment, launch::FindRank(environment), HostName());
  return {};
}

Result<std::optional<int>> RunCommand::RunOtherwise(Console& console) {
  ASSIGN_OR_RETURN(const ProfileRequest request, profile_flags_.Read());
  if (request.profiler != Profiler::kKineto) RETURN_IF_ERROR(RefuseKinetoFlags());
  RETURN_IF_ERROR(PrepareDebugging());
  ProfileRun run(request, arguments_, debug_variables_, logs_, quiet_, console);
  bool is_chosen = request.profiler != Profiler::kNone;
  if (is_chosen) {
    ASSIGN_OR_RETURN(is_chosen, run.IsChosen());
  }
  if (is_chosen && request.profiler != Profiler::kKineto) return run.RunProfiled();
  if (request.is_dry_run) {
    const bool by_ranks = request.profiler != Profiler::kNone && !is_chosen;
    return run.PrintUnprofiledPlan(
        by_ranks    ? fmt::format("runs as it is, as --ranks {} does not choose it", request.filter.text())
        : is_chosen ? "prepared for captures (KINETO_USE_DAEMON=1)"
                    : "runs as it is");
  }
  if (!is_chosen) return run.BecomeCommand();
  return std::optional<int>();
}

/// Where a daemon answers. Where none does, Kineto would wait for one at the end of each process, 10 s in PyTorch 2.13.
void RunCommand::PrepareKineto(const Result<std::string>& folder, Console& console, ForegroundCommand* command) const {
  Result<local::KinetoEnvironment> environment =
      folder ? local::MakeKinetoEnvironment(*folder, poll_seconds_, socket_folder_) : folder.error();
  if (environment) {
    command->environment = std::move(environment->variables);
    for (const std::string& warning : environment->warnings) Tell(console, warning);
    return;
  }
  command->environment.emplace_back("KINETO_USE_DAEMON", "1");
  if (!socket_folder_.empty()) command->environment.emplace_back("KINETO_IPC_SOCKET_DIR", socket_folder_);
  Tell(console, fmt::format("no base configuration for Kineto: {}", environment.error().ToString()));
}

void RunCommand::PreparePython(const Result<std::string>& folder, Console& console, StepRecording* recording,
                               ForegroundCommand* command) const {
  const auto add = [&](const std::vector<std::pair<std::string, std::string>>& variables) {
    command->environment.insert(command->environment.end(), variables.begin(), variables.end());
  };
  PythonSite site{.has_hang_dumps = hang_dumps_, .has_captures = !kineto_alone_, .marks_steps = !stages_.empty()};
  if (site.marks_steps) {
    Result<StepRecording> made = MakeStepRecording(KeptFolder());
    if (made) {
      *recording = std::move(*made);
      add(recording->variables);
      if (const Status kept = KeptFolder().empty() ? Status() : KeepWorkload(recording->path, workload_); !kept) {
        Tell(console, fmt::format("the workload is not kept for lockstep stages: {}", kept.error().ToString()));
      }
    } else {
      Tell(console, fmt::format("stages are not marked: {}", made.error().ToString()));
      site.marks_steps = false;
    }
  }
  if (!site.has_hang_dumps && !site.has_captures && !site.marks_steps) return;
  const auto variables = folder ? MakePythonSite(*folder, site) : folder.error();
  if (variables) {
    add(*variables);
  } else {
    Tell(
        console,
        fmt::format(
            "Python processes are not prepared: they are traced by Kineto alone, without --hang-dumps and --stages: {}",
            variables.error().ToString()));
  }
}

std::string RunCommand::KeptFolder() const { return stages_ == "true" ? "" : stages_; }

/// One process tells of all ranks: the one in front of the launcher. Of one behind it that rank's file is all there is.
void RunCommand::SummarizeStages(const StepRecording& recording, const Result<int>& status, Console& console) const {
  if (recording.path.empty() || RankFromEnvironment()) return;
  const std::string kept = KeptFolder();
  model::StageJob facts{.workload = workload_};
  if (status) facts.exit_status = *status;
  std::ostringstream nowhere;
  const Status told = TellStages(recording.path, kept.empty() ? "" : kept + "/summary.json", std::move(facts),
                                 quiet_ ? nowhere : console.err);
  if (!told && !quiet_) Tell(console, fmt::format("stages: {}", told.error().ToString()));
}

Result<int> RunCommand::Run(Console& console) {
  RETURN_IF_ERROR(ReadFlags());
  RETURN_IF_ERROR(logs_.Read());
  ASSIGN_OR_RETURN(const std::optional<int> ended, RunOtherwise(console));
  if (ended) return *ended;
  RETURN_IF_ERROR(CheckSocketFolder(console));

  ForegroundCommand command{.arguments = arguments_, .environment = {}};
  const Result<std::string> folder = local::MakeRuntimeFolder();
  ASSIGN_OR_RETURN(const std::optional<local::NodeDaemon> daemon, FindDaemon(folder, console));
  if (daemon) {
    PrepareKineto(folder, console, &command);
  } else if (!socket_folder_.empty()) {
    command.environment.emplace_back("KINETO_IPC_SOCKET_DIR", socket_folder_);
  }
  StepRecording recording;
  PreparePython(folder, console, &recording, &command);
  command.environment.insert(command.environment.end(), debug_variables_.begin(), debug_variables_.end());
  if (daemon) TellHow(*daemon, console);

  const Result<int> status = logs_.Run(command, console);
  SummarizeStages(recording, status, console);
  if (status) return *status;
  Tell(console, status.error().ToString());
  return status.error().code == ErrorCode::kNotFound ? kCommandNotFound : kCommandNotExecutable;
}

}  // namespace

std::unique_ptr<Subcommand> MakeRun() { return std::make_unique<RunCommand>(); }

}  // namespace lockstep::cli
