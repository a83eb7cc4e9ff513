#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/collectives.h"
#include "analysis/critical_path/critical_path.h"
#include "analysis/rank_map.h"
#include "base/nearest.h"
#include "present/export/timeline/timeline.h"
#include "present/report/format.h"
#include "present/report/json_stream.h"
#include "present/report/utf8.h"
#include "programs/cli/cli.h"
#include "programs/cli/merge_logs.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run/log_level.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/version.h"

namespace lockstep::cli {
namespace {

/// `lockstep merge PATH... -o FILE`: all ranks' traces as one timeline on one clock.
class MergeCommand : public Subcommand {
 public:
  const char* name() const override { return "merge"; }
  const char* purpose() const override {
    return "Write all ranks as one timeline on one clock, for Perfetto or Chrome";
  }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadSelection();
  Status ReadLogs(const model::Run& run, Console& console);
  uint64_t LeftOutLines(const timeline::Summary& summary) const;
  void WriteJson(const model::Run& run, const timeline::Summary& summary, bool partial, Console& console) const;
  void WriteText(const model::Run& run, const timeline::Summary& summary, Console& console) const;

  std::vector<std::string> paths_;
  std::string output_;
  std::string ranks_;
  std::string steps_;
  std::string from_;
  std::string to_;
  std::vector<std::string> lanes_;
  std::vector<std::string> log_paths_;
  std::string log_level_;
  logs::LogFilter log_filter_;
  bool no_python_ = false;
  bool no_flows_ = false;
  bool critical_path_ = false;
  bool json_ = false;
  bool quiet_ = false;
  timeline::Options options_;
  std::optional<MergeLogs> logs_;
  RunInput input_;
};

constexpr const char* kMergeFooter =
    "The file's ending chooses the format: .pftrace (Perfetto, compact), .json or\n"
    ".json.gz (Chrome's trace events, for viewers), .tar (one Perfetto file per\n"
    "rank, and how they belong together). A selection keeps whole events, those that\n"
    "start inside it. From logs (lockstep run --logs, lockstep::Logger, any text with\n"
    "times) it takes the lines of the time in which their rank was traced, and of\n"
    "the second after it.\n"
    "Exit status: 0 done; 1 failed; 2 misused; 4 partial: ranks or parts of files\n"
    "are missing, the rest was written.\n"
    "\n"
    "Examples:\n"
    "  lockstep merge traces/ -o job.pftrace\n"
    "  lockstep merge traces/ --logs logs/ -o job.pftrace\n"
    "  lockstep merge traces/ --ranks 0-3 --steps 12 --no-python -o step12.json.gz";

struct LaneChoice {
  const char* name;
  model::Lane lane;
};
constexpr LaneChoice kLanes[] = {
    {"operators", model::Lane::kOperators},
    {"python", model::Lane::kPython},
    {"runtime", model::Lane::kRuntime},
    {"device", model::Lane::kDevice},
    {"annotations", model::Lane::kDeviceAnnotation},
    {"other", model::Lane::kOther},
};

/// One line on a terminal, from the second second on.
class WritingLine {
 public:
  WritingLine(Console& console, bool quiet)
      : console_(console), shown_(false), off_(quiet || !console.err_is_terminal) {}
  ~WritingLine() {
    if (shown_) console_.err << "\r\x1b[K" << std::flush;
  }
  WritingLine(const WritingLine&) = delete;
  WritingLine& operator=(const WritingLine&) = delete;
  void Update(double share) {
    const auto now = std::chrono::steady_clock::now();
    if (off_ || now < next_) return;
    console_.err << fmt::format("\rwriting  {:.0f} %\x1b[K", share * 100) << std::flush;
    shown_ = true;
    next_ = now + std::chrono::milliseconds(100);
  }

 private:
  Console& console_;
  bool shown_;
  bool off_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

const char* FormatName(const timeline::OutputKind& kind) {
  switch (kind.format) {
    case timeline::Format::kPerfetto: return "perfetto";
    case timeline::Format::kChromeJson: return "chrome_json";
    case timeline::Format::kArchive: return "archive";
  }
  return "perfetto";
}

void MergeCommand::Declare(CLI::App& app) {
  app.add_option("PATH", paths_, "Trace files, folders and archives of them, in any mix")->type_name("PATH...");
  app.option_defaults()->group("Output");
  app.add_option("-o,--output", output_, "File to write: .pftrace, .json, .json.gz or .tar")->type_name("FILE");
  app.add_flag("--json", json_, "Print what was written as one JSON object (lockstep.merge/1, docs/json.md)");
  app.add_flag("-q,--quiet", quiet_, "No progress, no summary");
  app.option_defaults()->group("Logs");
  app.add_option("--logs", log_paths_, "Also the lines of ranks' logs, each at its time: folders and files; repeatable")
      ->type_name("PATH");
  app.add_option("--log-level", log_level_, "Only lines of this level or worse")->type_name(kLevelNames);
  app.option_defaults()->group("Selection");
  app.add_option("--ranks", ranks_, "Only these ranks, such as 0-3,7")->type_name("LIST");
  app.add_option("--steps", steps_, "Only these steps, by their numbers in the traces")->type_name("LIST");
  app.add_option("--from", from_, "Only from this time after the start of the run, such as 1.5s or 200ms")
      ->type_name("TIME");
  app.add_option("--to", to_, "Only up to this time after the start of the run")->type_name("TIME");
  app.add_option("--lanes", lanes_, "Only these: operators, python, runtime, device, annotations, other")
      ->type_name("LIST")
      ->delimiter(',');
  app.add_flag("--no-python", no_python_, "Leave Python frames out");
  app.add_flag("--no-flows", no_flows_, "Leave out the arrows of launches, collectives and calls between spans");
  app.add_flag("--critical-path", critical_path_, "Add a track with the rank's part of the critical path");
  input_.DeclareAnalysis(app, false);
  input_.DeclareRunning(app);
  app.footer(kMergeFooter);
}

Status MergeCommand::ReadSelection() {
  timeline::Selection& selection = options_.selection;
  if (!ranks_.empty()) {
    ASSIGN_OR_RETURN(const auto ranges, ParseRanges(ranks_, "--ranks"));
    for (const auto& [first, last] : ranges) {
      if (last > INT32_MAX) return Misuse(fmt::format("--ranks: no rank is as large as {}", last));
      selection.ranks.emplace_back(static_cast<int32_t>(first), static_cast<int32_t>(last));
    }
  }
  if (!steps_.empty()) {
    ASSIGN_OR_RETURN(selection.steps, ParseRanges(steps_, "--steps"));
  }
  if (!from_.empty()) {
    ASSIGN_OR_RETURN(selection.from_ns, ParseTime(from_, "--from"));
  }
  if (!to_.empty()) {
    ASSIGN_OR_RETURN(selection.to_ns, ParseTime(to_, "--to"));
  }
  if (selection.from_ns && selection.to_ns && *selection.from_ns >= *selection.to_ns)
    return Misuse(fmt::format("--from {} is not before --to {}", from_, to_));
  std::vector<std::string> names;
  for (const LaneChoice& choice : kLanes) names.emplace_back(choice.name);
  for (const std::string& lane : lanes_) {
    const auto found = std::find(names.begin(), names.end(), lane);
    if (found == names.end()) {
      return Misuse(fmt::format("--lanes: unknown lane '{}'{} (known: {})", lane, DidYouMean(lane, names),
                                fmt::join(names, ", ")));
    }
    selection.lanes.push_back(kLanes[found - names.begin()].lane);
  }
  if (no_python_) {
    if (selection.lanes.empty()) {
      for (const LaneChoice& choice : kLanes) selection.lanes.push_back(choice.lane);
    }
    std::erase(selection.lanes, model::Lane::kPython);
    if (selection.lanes.empty()) return Misuse("--lanes python and --no-python leave nothing to write");
  }
  selection.flows = !no_flows_;
  return {};
}

Status MergeCommand::ReadLogs(const model::Run& run, Console& console) {
  if (log_paths_.empty()) return {};
  ASSIGN_OR_RETURN(logs_, ReadMergeLogs(log_paths_, log_filter_, run));
  for (const std::string& problem : logs_->problems) {
    console.err << "lockstep: " << report::Printable(problem) << '\n';
  }
  options_.logs = &logs_->lines;
  return {};
}

uint64_t MergeCommand::LeftOutLines(const timeline::Summary& summary) const {
  return logs_ ? logs_->line_count() - summary.log_line_count : 0;
}

void MergeCommand::WriteJson(const model::Run& run, const timeline::Summary& summary, bool partial,
                             Console& console) const {
  report::WriteDocument(console.out, "lockstep.merge/1", partial, [&](JsonDocument& json) {
    report::JsonRow row;
    row.Key("path").Text(output_).Key("format").Text(FormatName(*timeline::KindOfOutput(output_)));
    row.Key("file_bytes").Uint(summary.file_bytes).Key("ranks").List(summary.ranks);
    row.Key("process_count").Uint(summary.process_count).Key("track_count").Uint(summary.track_count);
    row.Key("slice_count").Uint(summary.slice_count).Key("moved_slice_count").Uint(summary.moved_slice_count);
    row.Key("left_out_slice_count").Uint(summary.left_out_slice_count);
    row.Key("step_count").Uint(summary.step_count).Key("memory_event_count").Uint(summary.memory_count);
    row.Key("counter_value_count").Uint(summary.counter_value_count);
    row.Key("log_line_count").Uint(summary.log_line_count);
    row.Key("left_out_log_line_count").Uint(LeftOutLines(summary));
    row.Key("launch_flow_count").Uint(summary.flow_count);
    row.Key("collective_flow_count").Uint(summary.collective_flow_count);
    row.Key("link_flow_count").Uint(summary.link_flow_count);
    row.Key("backward_link_count").Uint(summary.backward_link_count);
    row.Key("request_count").Uint(summary.request_count);
    row.Key("first_ns").Optional(summary.first_ns).Key("last_ns").Optional(summary.last_ns);
    report::WriteRow(json, row);
    report::WriteLedger(json, run.ledger);
  });
}

void MergeCommand::WriteText(const model::Run& run, const timeline::Summary& summary, Console& console) const {
  const int64_t span_ns = summary.first_ns && summary.last_ns ? *summary.last_ns - *summary.first_ns : 0;
  std::ostream& out = console.out;
  out << fmt::format("{}  {}\n", report::Printable(output_),
                     report::FormatBytes(static_cast<int64_t>(summary.file_bytes)));
  out << fmt::format("  {} rank{}, {} tracks, {} events, {}\n", summary.ranks.size(),
                     summary.ranks.size() == 1 ? "" : "s", report::FormatCount(summary.track_count),
                     report::FormatCount(summary.slice_count), report::FormatDuration(span_ns));
  out << fmt::format("  {} step markers, {} launches and {} collectives joined by arrows, {} allocator events\n",
                     report::FormatCount(summary.step_count), report::FormatCount(summary.flow_count),
                     report::FormatCount(summary.collective_flow_count), report::FormatCount(summary.memory_count));
  if (summary.counter_value_count > 0)
    out << fmt::format("  {} samples of counters\n", report::FormatCount(summary.counter_value_count));
  if (logs_) {
    out << fmt::format("  {} log lines; {} more from times at which their ranks were not traced\n",
                       report::FormatCount(summary.log_line_count), report::FormatCount(logs_->outside_count));
    if (logs_->undated_count > 0) {
      out << fmt::format("  {} log lines left out: the traces of their ranks have no start time\n",
                         report::FormatCount(logs_->undated_count));
    }
    if (logs_->unplaced_count > 0) {
      out << fmt::format("  {} log lines left out: they have no time, or no rank\n",
                         report::FormatCount(logs_->unplaced_count));
    }
    if (logs_->over_limit_count > 0) {
      out << fmt::format("  {} log lines left out: too many for a timeline; --log-level warning keeps the worst\n",
                         report::FormatCount(logs_->over_limit_count));
    }
  }
  if (summary.request_count > 0 || summary.link_flow_count > 0) {
    out << fmt::format("  {} requests, {} calls from span to span joined by arrows\n",
                       report::FormatCount(summary.request_count), report::FormatCount(summary.link_flow_count));
  }
  if (summary.backward_link_count > 0) {
    out << fmt::format("  {} calls have no arrow: the called span begins before its caller, by these clocks\n",
                       report::FormatCount(summary.backward_link_count));
  }
  if (summary.moved_slice_count > 0) {
    out << fmt::format("  {} events overlap others of their stream or thread: they are on tracks named \"overlap\"\n",
                       report::FormatCount(summary.moved_slice_count));
  }
  if (summary.left_out_slice_count > 0)
    out << fmt::format("  {} events left out by the selection\n", report::FormatCount(summary.left_out_slice_count));
  int64_t widest_ns = 0;
  bool unknown = false;
  for (const model::RankTrace& trace : run.ranks) {
    widest_ns = std::max(widest_ns, trace.clock.uncertainty_ns.value_or(0));
    unknown = unknown || !trace.clock.uncertainty_ns;
  }
  if (run.ranks.size() > 1) {
    out << (unknown ? "  clocks: not every rank could be aligned; see lockstep analyze --section clocks\n"
                    : fmt::format("  clocks: aligned to within {}\n", report::FormatDuration(widest_ns)));
  }
  out << "Open it at https://ui.perfetto.dev (it is read in the browser, nothing is sent)\n";
}

Result<int> MergeCommand::Run(Console& console) {
  if (paths_.empty()) return Misuse("merge needs at least one PATH: a trace file, or a folder with traces");
  if (output_.empty()) return Misuse("merge needs -o FILE: where to write, such as -o job.pftrace");
  ASSIGN_OR_RETURN(const timeline::OutputKind kind, timeline::KindOfOutput(output_));
  RETURN_IF_ERROR(ReadSelection());
  ASSIGN_OR_RETURN(log_filter_.least, ParseLevel(log_level_, "--log-level"));
  if (!log_level_.empty() && log_paths_.empty()) return Misuse("--log-level is of --logs PATH, which is missing");

  ASSIGN_OR_RETURN(model::Run run, input_.Ingest(paths_, console, quiet_));
  ASSIGN_OR_RETURN(const analysis::AnalysisResult result,
                   input_.Analyze(&run, {critical_path_ ? "critical_path" : "collectives"}));
  analysis::FetchEvents(&run);
  if (critical_path_) options_.critical_path = &result.Get<analysis::CriticalPath>();
  RETURN_IF_ERROR(ReadLogs(run, console));
  options_.step_name = input_.analysis().step_name;
  options_.version = VersionText();
  Result<timeline::Summary> summary = Error{};
  {
    WritingLine line(console, quiet_);
    options_.on_progress = [&](double share) { line.Update(share); };
    summary = timeline::WriteTimeline(run, result.Get<analysis::Collectives>(), output_, kind, options_);
    options_.on_progress = {};
  }
  if (!summary) return std::move(summary).error();
  const bool partial = IsPartial(run) || (logs_ && !logs_->problems.empty());
  if (json_) {
    WriteJson(run, *summary, partial, console);
  } else if (!quiet_) {
    WriteText(run, *summary, console);
  }
  return partial ? kPartial : kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeMerge() { return std::make_unique<MergeCommand>(); }

}  // namespace lockstep::cli
