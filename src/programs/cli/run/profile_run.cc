#include "programs/cli/run/profile_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/host_name.h"
#include "base/now.h"
#include "inside/launch/job_id.h"
#include "inside/launch/manifest.h"
#include "inside/launch/outcome.h"
#include "inside/launch/output_name.h"
#include "inside/launch/scratch.h"
#include "inside/launch/shell_words.h"
#include "node/proc/job_environment.h"
#include "programs/cli/cli.h"
#include "programs/cli/run/foreground.h"
#include "programs/cli/run/launcher.h"
#include "programs/cli/run_input.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

std::string ShownCommand(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += word + '\0';
  return proc::CommandText(joined);
}

}  // namespace

ProfileRun::ProfileRun(ProfileRequest request, std::vector<std::string> command,
                       std::vector<std::pair<std::string, std::string>> extra, const RunLogs& logs, bool is_quiet,
                       Console& console)
    : request_(std::move(request)),
      command_(std::move(command)),
      extra_(std::move(extra)),
      logs_(logs),
      is_quiet_(is_quiet),
      console_(console),
      environment_(launch::Environment::Own()),
      identity_(launch::FindRank(environment_)),
      host_(HostName()) {}

void ProfileRun::Tell(const std::string& text) const {
  const std::string rank = identity_.rank ? fmt::format("rank {}: ", *identity_.rank) : "";
  console_.err << "lockstep: " << rank << text << std::endl;
}

std::string ProfileRun::Who() const {
  if (identity_.launcher == launch::Launcher::kAlone) return fmt::format("one process without a launcher on {}", host_);
  std::string who = fmt::format("rank {}", identity_.rank.value_or(0));
  if (identity_.world_size) who += fmt::format(" of {}", *identity_.world_size);
  if (identity_.local_rank) who += fmt::format(", local rank {}", *identity_.local_rank);
  if (identity_.local_size) who += fmt::format(" of {}", *identity_.local_size);
  return who + fmt::format(", on {}, as {} of {} says", host_, identity_.rank_variable,
                           launch::LauncherName(identity_.launcher));
}

// The same on every rank, so by nothing that differs among them.
std::string ProfileRun::DefaultFolder() const {
  std::string job = launch::JobId(environment_);
  for (char& c : job) c = c == '/' || c == '%' ? '_' : c;
  return std::string("lockstep-") + request_.tool_name() + (job.empty() ? "" : "-" + job);
}

Result<bool> ProfileRun::IsChosen() {
  if (!is_quiet_ && identity_.rank.value_or(0) == 0) {
    for (const std::string& note : identity_.notes) Tell(note);
  }
  return request_.filter.Selects(identity_, host_);
}

int ProfileRun::BecomeCommand() {
  const ForegroundCommand command{.arguments = command_, .environment = extra_};
  const Result<int> status = logs_.is_asked_for() ? logs_.Run(command, console_) : ReplaceByCommand(command);
  if (status) return *status;
  const Error& error = status.error();
  Tell(error.ToString());
  return error.code == ErrorCode::kNotFound ? kCommandNotFound : kCommandNotExecutable;
}

// A profiler sees the processes below it on its own node, and writes all of them into one report.
Status ProfileRun::CheckPlacement() const {
  if (identity_.launcher != launch::Launcher::kAlone) return {};
  if (StartsOnOtherNodes(command_)) {
    return Misuse(
        fmt::format("{0} starts its processes on other nodes, where no profiler in front of it sees them: {0} ... "
                    "lockstep run --profile ... -- CMD",
                    command_[0]));
  }
  return {};
}

Status ProfileRun::CheckFree(const Plan& plan) const {
  if (request_.overwrites) return {};
  for (const char* ending : {".nsys-rep", ".1.nsys-rep", ".qdstrm", ".ncu-rep"}) {
    const fs::path path = fs::path(plan.folder) / (plan.stem + ending);
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    return Error{.code = ErrorCode::kFailedPrecondition,
                 .message = "exists and is kept; --force replaces it, --out chooses another folder",
                 .file = path.string(),
                 .rank = identity_.rank};
  }
  return {};
}

Result<launch::NcuRequest> ProfileRun::ReadKernels() const {
  launch::NcuRequest ncu = request_.ncu;
  if (request_.kernels_from.empty()) return ncu;
  const auto in_file = [this](ErrorCode code, const std::string& message) {
    return Error{.code = code, .message = message, .file = request_.kernels_from, .rank = identity_.rank};
  };
  std::error_code failed;
  if (fs::is_directory(request_.kernels_from, failed)) {
    return in_file(
        ErrorCode::kInvalidArgument,
        fmt::format("is a folder; give its analysis: lockstep analyze --json {} > report.json", request_.kernels_from));
  }
  std::ifstream file(request_.kernels_from, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return in_file(ErrorCode::kIo, std::strerror(errno));
  const Result<std::vector<launch::KernelTotal>> kernels = launch::ReadKernelTotals(text.str());
  if (!kernels) return in_file(kernels.error().code, kernels.error().message);
  ncu.heaviest = launch::Heaviest(*kernels, static_cast<size_t>(request_.top));
  return ncu;
}

Result<ProfileRun::Plan> ProfileRun::MakePlan() {
  RETURN_IF_ERROR(CheckPlacement());
  Plan plan;
  const std::string name = request_.tool_name();
  ASSIGN_OR_RETURN(plan.tool, launch::FindTool(name, request_.tool, environment_));
  ASSIGN_OR_RETURN(plan.version, launch::AskToolVersion(plan.tool));
  plan.folder = request_.out.empty() ? DefaultFolder() : request_.out;
  ASSIGN_OR_RETURN(plan.stem, launch::ExpandName(request_.name_pattern, {.identity = identity_,
                                                                         .environment = environment_,
                                                                         .filter = request_.filter,
                                                                         .host = host_,
                                                                         .tool = name}));
  RETURN_IF_ERROR(CheckFree(plan));
  const std::string output = (fs::path(plan.folder) / plan.stem).string();
  if (request_.profiler == Profiler::kNcu) {
    ASSIGN_OR_RETURN(const launch::NcuRequest ncu, ReadKernels());
    ASSIGN_OR_RETURN(plan.how, launch::MakeNcuCommand(ncu, plan.version, output, identity_, request_.filter));
  } else {
    ASSIGN_OR_RETURN(plan.how,
                     launch::MakeNsysCommand(request_.nsys, plan.version, output, identity_, request_.filter));
  }
  launch::PrepareScratch(name, request_.scratch, environment_, &plan.how);
  if (identity_.launcher == launch::Launcher::kAlone && StartsRanksHere(command_)) {
    plan.how.warnings.push_back(
        fmt::format("in front of {0}, {1} writes one report of all ranks of this node; for one report each: {0} "
                    "--no-python ... lockstep run --profile {1} -- python CMD",
                    fs::path(command_[0]).filename().string(), name));
  }
  return plan;
}

std::vector<std::string> ProfileRun::Arguments(const Plan& plan) const {
  std::vector<std::string> arguments = {plan.tool};
  if (request_.profiler == Profiler::kNsys) arguments.emplace_back("profile");
  for (const launch::ToolOption& option : plan.how.options) arguments.push_back(option.text);
  arguments.insert(arguments.end(), command_.begin(), command_.end());
  return arguments;
}

void ProfileRun::PrintPlan(const Plan& plan) const {
  std::ostream& out = console_.out;
  out << Who() << ": profiled, as --ranks " << request_.filter.text() << " has it\n";
  out << fmt::format("tool      {} ({})\n", plan.tool, launch::ToText(plan.version));
  const std::string output = (fs::path(plan.folder) / plan.stem).string();
  out << fmt::format("report    {0}.{1}-rep\nmanifest  {0}.launch\n", output, request_.tool_name());
  size_t width = 0;
  for (const launch::ToolOption& option : plan.how.options) {
    if (option.text.size() <= 40) width = std::max(width, option.text.size());
  }
  const char* title = "options";
  for (const launch::ToolOption& option : plan.how.options) {
    out << fmt::format("{:<9} {:<{}}  {}\n", title, option.text, width, option.why);
    title = "";
  }
  for (const auto& [name, value] : plan.how.environment) out << fmt::format("set       {}={}\n", name, value);
  for (const auto& [name, value] : extra_) out << fmt::format("set       {}={}\n", name, value);
  for (const std::string& name : plan.how.unset) {
    if (environment_.Has(name)) out << fmt::format("unset     {}\n", name);
  }
  out << "command   " << launch::ShellLine(Arguments(plan)) << '\n';
  for (const std::string& warning : plan.how.warnings) out << "warning   " << warning << '\n';
}

int ProfileRun::PrintUnprofiledPlan(const std::string& why) {
  console_.out << Who() << ": " << why << '\n';
  for (const auto& [name, value] : extra_) console_.out << fmt::format("set       {}={}\n", name, value);
  console_.out << "command   " << launch::ShellLine(command_) << '\n';
  return kDone;
}

Result<int> ProfileRun::RunProfiled() {
  ASSIGN_OR_RETURN(const Plan plan, MakePlan());
  if (request_.is_dry_run) {
    PrintPlan(plan);
    return kDone;
  }
  std::error_code failed;
  fs::create_directories(plan.folder, failed);
  if (failed)
    return Error{.code = ErrorCode::kIo, .message = failed.message(), .file = plan.folder, .rank = identity_.rank};
  const std::string output = (fs::path(plan.folder) / plan.stem).string();

  // After --duration nsys ends, and leaves the program to its helper.
  ForegroundCommand foreground{.arguments = Arguments(plan),
                               .environment = extra_,
                               .successor = request_.profiler == Profiler::kNsys ? "nsys-launcher" : ""};
  foreground.environment.insert(foreground.environment.end(), plan.how.environment.begin(), plan.how.environment.end());
  for (const std::string& name : plan.how.unset) {
    if (!environment_.Has(name)) continue;
    ::unsetenv(name.c_str());
    if (!is_quiet_)
      Tell(fmt::format("{} is removed from the environment: a process can have one CUDA profiler, and that is {}", name,
                       request_.tool_name()));
  }
  for (const std::string& warning : plan.how.warnings) Tell(warning);

  launch::ManifestEntry entry{.identity = identity_,
                              .host = host_,
                              .pid = ::getpid(),
                              .tool = request_.tool_name(),
                              .tool_version = launch::ToText(plan.version),
                              .visible_devices = std::string(environment_.Get("CUDA_VISIBLE_DEVICES")),
                              .job = launch::JobId(environment_),
                              .start_unix_ns = UnixNow(),
                              .command = ShownCommand(command_)};
  const std::string manifest = output + ".launch";
  if (const Status written = launch::WriteManifest(manifest, entry); !written) return written.error();
  if (!is_quiet_) Tell(fmt::format("{0} {1} writes {2}.{0}-rep", entry.tool, entry.tool_version, output));

  const Result<int> status = logs_.Run(foreground, console_);
  entry.end_unix_ns = UnixNow();
  entry.exit_code = status                                        ? *status
                    : status.error().code == ErrorCode::kNotFound ? kCommandNotFound
                                                                  : kCommandNotExecutable;
  const bool names_kernels = !request_.kernels_from.empty() || !request_.ncu.kernels.empty();
  const launch::Outcome outcome = request_.profiler == Profiler::kNcu
                                      ? launch::FindNcuOutcome(output, names_kernels, entry.start_unix_ns)
                                      : launch::FindNsysOutcome(output, request_.nsys, plan.tool, entry.start_unix_ns);
  entry.files = outcome.files;
  if (const Status written = launch::WriteManifest(manifest, entry); !written) Tell(written.error().ToString());
  if (!status) Tell(status.error().ToString());
  for (const std::string& problem : outcome.problems) Tell(fmt::format("{}: {}", output, problem));
  return *entry.exit_code;
}

}  // namespace lockstep::cli
