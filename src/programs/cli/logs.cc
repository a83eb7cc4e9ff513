#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "base/nanoseconds.h"
#include "ingest/logs/first_errors.h"
#include "ingest/logs/log_filter.h"
#include "ingest/logs/log_merger.h"
#include "model/log_line/line.h"
#include "present/report/logs/log_output.h"
#include "present/report/utf8.h"
#include "programs/cli/cli.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run/log_level.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/terminal/console.h"

namespace lockstep::cli {
namespace {

/// `lockstep logs PATH...`: the logs of all ranks as one.
class LogsCommand : public Subcommand {
 public:
  const char* name() const override { return "logs"; }
  const char* purpose() const override { return "Show the logs of all ranks as one: merged by time, filtered, folded"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadFlags();
  /// What each rank's wall clock reads too much, from traces of the same job.
  Status ReadClocks(Console& console);
  Status FindNew();
  void Show(report::LogOutput& output);
  void Follow(report::LogOutput& output);
  report::LogSummary Summary() const;
  void TellProblems(const report::LogSummary& summary, Console& console) const;

  std::vector<std::string> paths_;
  bool follows_ = false;
  bool first_errors_ = false;
  bool is_unfolded_ = false;
  bool json_ = false;
  bool quiet_ = false;
  std::string ranks_;
  std::string level_;
  std::vector<std::string> texts_;
  std::vector<std::string> trace_paths_;
  std::string colour_ = "auto";
  RunInput input_;

  logs::LogFilter filter_;
  logs::LogReader::ClockOffset offset_;
  std::vector<std::unique_ptr<logs::LogReader>> readers_;
  logs::LogMerger merger_;
};

constexpr int64_t kFoldWindow_ns = kSecondNs;
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr int64_t kHold_ns = 300'000'000;  ///< So much later than its time a line is shown: others may be before it.
constexpr int64_t kHoldMost_ns = 2'000'000'000;  ///< Of a host whose clock is ahead of ours.
constexpr int64_t kNewFiles_ns = kSecondNs;

constexpr const char* kLogsFooter =
    "PATH is a folder of 'lockstep run --logs', any other folder with logs of ranks, or single\n"
    "files: plain, .gz, .zst or .xz, rotated or still being written. Logs of lockstep carry\n"
    "time, rank and level; in other logs these are read from the text (docs/logs.md).\n"
    "A line that several ranks write within a second is shown once.\n"
    "Exit status: 0 done; 1 failed; 2 misused; 4 partial: a file could not be read whole.\n"
    "\n"
    "Examples:\n"
    "  lockstep logs logs/\n"
    "  lockstep logs logs/ --first-errors\n"
    "  lockstep logs logs/ --follow --rank 0,8-15 --level warning --grep NCCL";

int64_t MonotonicNow() { return logs::LineTime::Now().monotonic_ns; }

/// Each log has a file open.
void RaiseOpenFiles() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

bool OutputIsGone() {
  pollfd out = {STDOUT_FILENO, 0, 0};
  return ::poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLNVAL)) != 0;
}

void LogsCommand::Declare(CLI::App& app) {
  app.add_option("PATH", paths_, "Folders of logs, and logs")->type_name("PATH...");
  app.option_defaults()->group("Lines");
  app.add_flag("-f,--follow", follows_, "Continue with new lines and new logs as they are written");
  app.add_option("--rank", ranks_, "Only these ranks, such as 0,8-15")->type_name("LIST");
  app.add_option("--level", level_, "Only lines of this level or worse")->type_name(kLevelNames);
  app.add_option("--grep", texts_, "Only lines with this text; repeatable, one match is enough")->type_name("TEXT");
  app.add_flag("--first-errors", first_errors_, "Only each rank's first error, the earliest first");
  app.add_flag("--no-fold", is_unfolded_, "Print a line for each rank, even if several ranks write the same");
  app.add_option("--clocks", trace_paths_,
                 "Correct the hosts' clocks with traces of the same job whose ranks share collectives; repeatable")
      ->type_name("PATH");
  app.option_defaults()->group("Output");
  app.add_flag("--json", json_, "Print one JSON object per line (lockstep.logs/1, docs/json.md)");
  app.add_option("--color,--colour", colour_, "When to use colour (auto: on a terminal without NO_COLOR)")
      ->type_name("auto|always|never")
      ->check(Checked(CLI::IsMember({"auto", "always", "never"})));
  app.add_flag("-q,--quiet", quiet_, "On standard error only files that cannot be read");
  app.footer(kLogsFooter);
}

Status LogsCommand::ReadFlags() {
  if (paths_.empty()) return Misuse("logs needs a folder of logs, or logs");
  if (follows_ && first_errors_) return Misuse("--first-errors reads existing logs and cannot be used with --follow");
  filter_.texts = texts_;
  if (!ranks_.empty()) {
    ASSIGN_OR_RETURN(filter_.ranks, ParseRanges(ranks_, "--rank"));
  }
  ASSIGN_OR_RETURN(filter_.least, ParseLevel(level_, "--level"));
  if (first_errors_) filter_.least = std::max(filter_.least.value_or(logs::Level::kError), logs::Level::kError);
  return {};
}

Status LogsCommand::ReadClocks(Console& console) {
  if (trace_paths_.empty()) return {};
  ASSIGN_OR_RETURN(model::Run run, input_.Ingest(trace_paths_, console, quiet_));
  ASSIGN_OR_RETURN(const analysis::AnalysisResult result, input_.Analyze(&run, {"collectives"}));
  std::map<int32_t, int64_t> offsets;
  for (const model::RankTrace& trace : run.ranks) {
    // Drift over the length of a trace says nothing of hours.
    const bool is_measured =
        trace.base_time_known && trace.clock.basis == model::ClockMap::Basis::kCollectives && trace.window == 0;
    if (is_measured) offsets[trace.rank.value] = trace.clock.offset_ns;
  }
  if (offsets.empty() && !quiet_) {
    console.err << "lockstep: the traces do not show the clocks' offsets; the hosts' own clocks are used\n";
  }
  if (offsets.empty()) return {};
  offset_ = [offsets = std::move(offsets)](std::optional<int32_t> rank) {
    const auto found = rank ? offsets.find(*rank) : offsets.end();
    return found == offsets.end() ? int64_t{0} : found->second;
  };
  return {};
}

Status LogsCommand::FindNew() {
  ASSIGN_OR_RETURN(std::vector<logs::LogFamily> families, logs::FindLogs(paths_));
  for (logs::LogFamily& family : families) {
    const bool is_known = std::any_of(readers_.begin(), readers_.end(),
                                      [&](const auto& reader) { return reader->path() == family.path; });
    if (is_known) continue;
    readers_.push_back(std::make_unique<logs::LogReader>(std::move(family), filter_, offset_));
    merger_.Add(readers_.back().get());
  }
  return {};
}

void LogsCommand::Show(report::LogOutput& output) {
  logs::LogLine line;
  if (first_errors_) {
    logs::FirstErrors errors;
    while (merger_.Next(&line)) errors.Add(line);
    for (const logs::FoldedLine& error : errors.lines()) output.FirstError(error);
    return;
  }
  logs::LogFold fold(is_unfolded_ ? 0 : kFoldWindow_ns, [&](const logs::FoldedLine& folded) { output.Line(folded); });
  while (merger_.Next(&line)) fold.Add(line);
  fold.Flush();
}

void LogsCommand::Follow(report::LogOutput& output) {
  logs::LogFold fold(is_unfolded_ ? 0 : kFoldWindow_ns, [&](const logs::FoldedLine& folded) { output.Line(folded); });
  logs::LogLine line;
  int64_t last_given_ns = MonotonicNow();
  int64_t last_found_ns = last_given_ns;
  while (!OutputIsGone()) {
    const logs::LineTime now = logs::LineTime::Now();
    if (now.monotonic_ns - last_found_ns > kNewFiles_ns) {
      [[maybe_unused]] const Status found = FindNew();  // A folder that is gone for a moment may come again.
      last_found_ns = now.monotonic_ns;
    }
    merger_.Retry();
    const bool waits_for_nobody = now.monotonic_ns - last_given_ns > kHoldMost_ns;
    while (merger_.Next(&line, true, waits_for_nobody ? INT64_MAX : now.unix_ns - kHold_ns)) {
      fold.Add(line);
      last_given_ns = now.monotonic_ns;
    }
    if (waits_for_nobody) {
      fold.Flush();
    } else {
      fold.Advance(now.unix_ns - kHold_ns);
    }
    output.Flush();
    std::this_thread::sleep_for(kLook);
  }
}

report::LogSummary LogsCommand::Summary() const {
  report::LogSummary summary{.counts = {}, .log_count = readers_.size(), .is_aligned = offset_ != nullptr};
  for (const auto& reader : readers_) {
    const logs::LogCounts& counts = reader->counts();
    summary.counts.line_count += counts.line_count;
    summary.counts.wanted_count += counts.wanted_count;
    summary.counts.byte_count += counts.byte_count;
    summary.counts.untimed_count += counts.untimed_count;
    const auto append = [](const std::vector<std::string>& from, std::vector<std::string>* to) {
      to->insert(to->end(), from.begin(), from.end());
    };
    append(counts.problems, &summary.counts.problems);
    append(counts.clock_steps, &summary.counts.clock_steps);
  }
  return summary;
}

void LogsCommand::TellProblems(const report::LogSummary& summary, Console& console) const {
  for (const std::string& problem : summary.counts.problems) {
    console.err << "lockstep: " << report::Printable(problem) << '\n';
  }
  if (quiet_) return;
  for (const std::string& step : summary.counts.clock_steps) {
    console.err << "lockstep: " << report::Printable(step) << '\n';
  }
  if (summary.counts.untimed_count > 0) {
    console.err << fmt::format("lockstep: {} lines have no time, nor has any line above them: they come first\n",
                               summary.counts.untimed_count);
  }
  std::set<std::string> hosts;
  for (const auto& reader : readers_) hosts.insert(reader->host());
  hosts.erase("");
  if (hosts.size() > 1 && !summary.is_aligned) {
    console.err << fmt::format(
        "lockstep: the order between {} hosts is that of their own clocks; --clocks TRACES corrects them\n",
        hosts.size());
  }
}

Result<int> LogsCommand::Run(Console& console) {
  RETURN_IF_ERROR(ReadFlags());
  RaiseOpenFiles();
  RETURN_IF_ERROR(ReadClocks(console));
  RETURN_IF_ERROR(FindNew());
  const ColourMode mode = colour_ == "always"  ? ColourMode::kAlways
                          : colour_ == "never" ? ColourMode::kNever
                                               : ColourMode::kAuto;
  std::unique_ptr<report::LogOutput> output;
  if (json_) {
    output = std::make_unique<report::LogJson>(console.out);
  } else {
    output = std::make_unique<report::LogText>(console.out, console.UseColour(mode));
  }
  if (follows_) {
    Follow(*output);
  } else {
    Show(*output);
  }
  const report::LogSummary summary = Summary();
  output->End(summary);
  output->Flush();
  TellProblems(summary, console);
  return summary.counts.problems.empty() ? kDone : kPartial;
}

}  // namespace

std::unique_ptr<Subcommand> MakeLogs() { return std::make_unique<LogsCommand>(); }

}  // namespace lockstep::cli
