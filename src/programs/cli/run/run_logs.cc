#include "programs/cli/run/run_logs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "inside/launch/environment.h"
#include "inside/launch/job_id.h"
#include "inside/launch/rank_environment.h"
#include "inside/log_write/output_capture.h"
#include "model/log_line/log_name.h"
#include "programs/cli/run/launcher.h"
#include "programs/cli/run_input.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

/// In the middle of what CMD prints: one write, after which the line is whole.
void Tell(const std::string& text) {
  const std::string line = "lockstep: " + text + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void SetUnlessSet(const char* name, const std::string& value, const launch::Environment& environment,
                  ForegroundCommand* command) {
  if (!environment.Has(name)) command->environment.emplace_back(name, value);
}

}  // namespace

void RunLogs::Declare(CLI::App& app) {
  app_ = &app;
  app.option_defaults()->group("Logs");
  // torchrun takes a --logs behind itself for one of its own flags, cut short.
  app.add_option("--logs,--rank-logs", folder_,
                 "Write CMD's output to a log of its rank in this folder, with times, for 'lockstep logs'; behind "
                 "torchrun use --rank-logs")
      ->type_name("DIR");
  app.add_option("--console", console_, "Ranks whose output also goes to the console (rank0)")
      ->type_name("rank0|all|none")
      ->check(Checked(CLI::IsMember({"rank0", "all", "none"})));
  app.add_flag("--log-json", is_json_, "Write logs as JSON lines");
  app.add_option("--log-size", max_bytes_, "Rotate a log of this size to .log.1 (100MB)")
      ->type_name("BYTES")
      ->transform(Checked(CLI::AsSizeValue(true)));
  app.add_option("--log-files", file_count_, "Number of log files kept for each rank, the current one included (5)")
      ->type_name("N")
      ->check(Checked(CLI::Range(1, 999)));
  app.add_flag("--log-plain", is_plain_,
               "Do not compress .log.1 and older logs; otherwise they become .log.1.gz when a processor is idle");
}

Status RunLogs::Read() {
  if (is_asked_for()) {
    if (max_bytes_ < 1'000) return Misuse("--log-size: 1000 bytes at least");
    return {};
  }
  for (const char* name : {"--console", "--log-json", "--log-size", "--log-files", "--log-plain"}) {
    if (app_->get_option(name)->count() > 0) return Misuse(fmt::format("{} is for --logs DIR", name));
  }
  return {};
}

Result<int> RunLogs::Run(ForegroundCommand command, Console& console) const {
  if (!is_asked_for()) return RunInForeground(command);
  const launch::Environment environment = launch::Environment::Own();
  const launch::RankIdentity identity = launch::FindRank(environment);
  const logs::LineTime now = logs::LineTime::Now();
  std::error_code failed;
  const fs::path folder = fs::absolute(folder_, failed);  // CMD may go elsewhere.
  const logs::LogName name = {.rank = identity.rank,
                              .host = logs::HostName(),
                              .job = launch::JobId(environment),
                              .start_unix_ns = now.unix_ns,
                              .pid = ::getpid(),
                              .form = is_json_ ? logs::LineForm::kJson : logs::LineForm::kText};
  const std::string who = identity.rank ? fmt::format("rank {}: ", *identity.rank) : "";
  Result<logs::RotatingFile> file = logs::RotatingFile::Create({.path = (folder / name.ToText()).string(),
                                                                .max_bytes = max_bytes_,
                                                                .file_count = file_count_,
                                                                .compresses = !is_plain_});
  if (!file) {
    Tell(fmt::format("{}no log is written: {}; the job runs and prints to the console", who, file.error().ToString()));
    return RunInForeground(command);
  }
  if (!identity.rank && StartsRanksHere(command.arguments)) {
    const std::string launcher = fs::path(command.arguments[0]).filename().string();
    Tell(
        fmt::format("all ranks of this node share one log, as --logs stands in front of {0}; for one each: {0} "
                    "--no-python ... lockstep run --rank-logs DIR -- python CMD",
                    launcher));
  }
  const bool is_shown = console_ == "all" || (console_ == "rank0" && identity.rank.value_or(0) == 0);
  logs::LogSink sink(std::move(*file), logs::LineWriter(name.form, identity.rank, name.host),
                     [who](const std::string& text) { Tell(who + text); });
  const std::string path = sink.path();
  console.out.flush();
  Result<std::unique_ptr<logs::OutputCapture>> capture = logs::OutputCapture::Start(
      std::move(sink), {.output = is_shown ? STDOUT_FILENO : -1, .error = is_shown ? STDERR_FILENO : -1});
  if (!capture) {
    Tell(fmt::format("{}no log is written: {}", who, capture.error().ToString()));
    return RunInForeground(command);
  }
  command.output = (*capture)->output_fd();
  command.error = (*capture)->error_fd();
  // Python keeps lines back when it writes to a pipe; they would get the wrong times, and be lost in a crash.
  SetUnlessSet("PYTHONUNBUFFERED", "1", environment, &command);
  SetUnlessSet("LOCKSTEP_LOG_DIR", folder.string(), environment, &command);
  Result<int> status = RunInForeground(command);
  (*capture)->Finish();
  if (!status && fs::is_empty(path, failed)) fs::remove(path, failed);  // Nothing ran.
  if (status && *status != 0 && !is_shown) {
    Tell(fmt::format("{}ended with status {}; what it printed: {}", who, *status, path));
  }
  return status;
}

}  // namespace lockstep::cli
