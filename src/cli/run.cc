#include "cli/run.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "cli/cli.h"
#include "cli/foreground.h"
#include "cli/nearest.h"
#include "cli/run_input.h"
#include "cli/runtime_folder.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kMaxPollSeconds = 3600;

constexpr const char* kFooter =
    "CMD gets KINETO_USE_DAEMON=1, with which PyTorch's own profiler library registers with\n"
    "the node's lockstepd, and a base configuration for it (KINETO_CONFIG) unless it has one;\n"
    "'lockstep capture' then traces it at any time. What cannot be prepared is said on standard\n"
    "error, and CMD runs all the same. Signals are passed on to CMD.\n"
    "Exit status: that of CMD; 128 + N when signal N ended it; 127 there is no CMD, 126 it\n"
    "cannot be run; 1 failed and 2 misused, before CMD was started.\n"
    "\n"
    "Examples:\n"
    "  lockstep run -- torchrun --nproc-per-node 8 train.py\n"
    "  srun lockstep run -- python train.py";

}  // namespace

void RunCommand::Declare(CLI::App& app) {
  app_ = &app;
  app.prefix_command();  // All that follows the first word that is no flag of ours is CMD's.
  const char* group = "Kineto";
  app.add_option("--interval", interval_, "How often the processes ask for a capture, whole seconds (1s)")
      ->type_name("TIME")
      ->group(group);
  app.add_option("--socket-dir", socket_folder_,
                 "Let them reach the daemon through a socket in this folder, as containers with networks of their own "
                 "have to; at most 54 characters, the same path on both sides")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("-q,--quiet", quiet_, "Only what goes wrong on standard error");
  app.footer(kFooter);
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

Result<int> RunCommand::Run(Console& console) {
  RETURN_IF_ERROR(ReadFlags());
  if (!socket_folder_.empty()) {
    const Status ready = PrepareSocketFolder(socket_folder_);
    if (!ready && ready.error().code == ErrorCode::kInvalidArgument) return ready.error();
    if (!ready) {
      Tell(console, fmt::format("{}; it is not used", ready.error().ToString()));
      socket_folder_.clear();  // Without it the job runs; with a folder that cannot be used Kineto complains for ever.
    }
  }

  ForegroundCommand command{.arguments = arguments_, .environment = {}};
  const Result<std::string> folder = MakeRuntimeFolder();
  Result<KinetoEnvironment> environment =
      folder ? MakeKinetoEnvironment(*folder, poll_seconds_, socket_folder_) : folder.error();
  if (environment) {
    command.environment = std::move(environment->variables);
    for (const std::string& warning : environment->warnings) Tell(console, warning);
  } else {
    command.environment.emplace_back("KINETO_USE_DAEMON", "1");
    if (!socket_folder_.empty()) command.environment.emplace_back("KINETO_IPC_SOCKET_DIR", socket_folder_);
    Tell(console, fmt::format("no base configuration for Kineto: {}", environment.error().ToString()));
  }

  const Result<int> status = RunInForeground(command);
  if (status) return *status;
  Tell(console, status.error().ToString());
  return status.error().code == ErrorCode::kNotFound ? kCommandNotFound : kCommandNotExecutable;
}

}  // namespace lockstep::cli
