#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/breakdown.h"
#include "analysis/critical_path/critical_path.h"
#include "analysis/fabric/fabric.h"
#include "analysis/finding.h"
#include "analysis/pass.h"
#include "analysis/pass_registry.h"
#include "analysis/rank_map.h"
#include "base/nearest.h"
#include "base/output_file.h"
#include "ingest/bench_results/bench_results.h"
#include "present/page/page_blocks.h"
#include "present/page/page_limits.h"
#include "present/report/report.h"
#include "programs/cli/cli.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/terminal/progress.h"
#include "programs/cli/terminal/seconds_since.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {
namespace {

/// `lockstep analyze PATH...`: reads the traces of a job, runs the passes, prints the report.
class AnalyzeCommand : public Subcommand {
 public:
  const char* name() const override { return "analyze"; }
  const char* purpose() const override {
    return "Say where the time of a training job went, and which rank holds it up";
  }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  void DeclareOutput(CLI::App& app);
  void DeclareAnalysis(CLI::App& app);
  Status CheckNames() const;
  Status CheckPageFile() const;
  Status WritePage(const model::Run& run, const analysis::AnalysisResult& result, bool partial, Console& console);
  int ListPasses(Console& console) const;
  Status CheckSelection(const model::Run& run, const analysis::AnalysisResult& result) const;
  Status Write(const model::Run& run, const analysis::AnalysisResult& result, bool partial, Console& console) const;
  void WriteTimings(const model::Run& run, const analysis::AnalysisResult& result, Console& console) const;
  int ExitStatusOf(const analysis::AnalysisResult& result, bool partial) const;

  std::vector<std::string> paths_;
  bool json_ = false;
  std::string format_ = "text";
  std::string page_file_;
  uint64_t page_bytes_ = page::kDefaultPageBytes;
  std::string csv_folder_;
  std::vector<std::string> sections_;
  uint64_t top_ = 10;
  std::optional<int32_t> rank_;
  std::optional<int64_t> step_;
  TextFlags text_;
  bool quiet_ = false;
  bool timings_ = false;
  bool list_ = false;
  std::string fabric_file_;
  bool what_if_ = false;
  double what_if_speedup_ = 2;
  std::vector<std::string> passes_;
  std::optional<std::string> range_name_;
  int64_t range_instance_ = 0;
  std::string fail_on_;
  double analysis_wall_s_ = 0;
  double ingest_wall_s_ = 0;
  double page_wall_s_ = 0;
  RunInput input_;
};

constexpr const char* kAnalyzeExamples =
    "Exit status: 0 done; 1 failed; 2 misused; 3 a finding at or above --fail-on;\n"
    "4 partial: ranks or parts of files are missing, the rest was printed. Where\n"
    "3 and 4 both apply the status is 3, and \"partial\" in the JSON is true.\n"
    "\n"
    "Examples:\n"
    "  lockstep analyze traces/                        the folder of a job\n"
    "  lockstep analyze traces/ -o report.html         a page for the browser\n"
    "  lockstep analyze traces/ --section kernels,collectives --top 20\n"
    "  lockstep analyze rank*.json.gz --json --fail-on warning > report.json";

Status CheckName(const std::string& name, const char* what, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  return Misuse(
      fmt::format("unknown {} '{}'{} (known: {})", what, name, DidYouMean(name, known), fmt::join(known, ", ")));
}

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const analysis::PassInfo& pass : analysis::Passes()) names.emplace_back(pass.name);
  return names;
}

void AnalyzeCommand::Declare(CLI::App& app) {
  app.add_option("PATH", paths_, "Trace files (.json, .json.gz, .json.zst), folders and archives of them, in any mix")
      ->type_name("PATH...");
  DeclareOutput(app);
  input_.DeclareAnalysis(app);
  DeclareAnalysis(app);
  input_.DeclareRunning(app);
  app.footer(kAnalyzeExamples);
}

void AnalyzeCommand::DeclareOutput(CLI::App& app) {
  app.option_defaults()->group("Output");
  app.add_flag("--json", json_, "One JSON object (lockstep.analyze/1, docs/json.md), with every row of every table");
  app.add_option("--format", format_, "text (default) or json")
      ->type_name("text|json")
      ->check(Checked(CLI::IsMember({"text", "json"})));
  app.add_option("-o,--output", page_file_, "Also write the report page: one HTML file that needs no network")
      ->type_name("FILE.html");
  app.add_option("--page-size", page_bytes_, "Leave detail out of the page above this many bytes, such as 16M (64M)")
      ->type_name("SIZE")
      ->transform(Checked(CLI::AsSizeValue(false)));
  app.add_option("--csv", csv_folder_, "Also write one CSV file per table into this folder")->type_name("DIR");
  app.add_option(
         "--section", sections_,
         fmt::format("Text: print these after the first screen: {}, or all", fmt::join(report::SectionNames(), ", ")))
      ->type_name("LIST")
      ->delimiter(',');
  app.add_option("--top", top_, "Text: rows per table (10)")
      ->type_name("N")
      ->check(Checked(CLI::Range(uint64_t{1}, uint64_t{1000000})));
  app.add_option("--rank", rank_, "Text: only this rank")->type_name("N");
  app.add_option("--step", step_, "Text: only this step, by its number in the trace")->type_name("N");
  text_.Declare(app);
  app.add_flag("-q,--quiet", quiet_, "No progress, no hints on standard error; with --output no text either");
  app.add_flag("--timings", timings_, "Time of ingest and of each pass, on standard error");
}

void AnalyzeCommand::DeclareAnalysis(CLI::App& app) {
  app.option_defaults()->group("Analysis");
  app.add_option("--pass", passes_, "Run only these passes and what they need (all)")
      ->type_name("LIST")
      ->delimiter(',');
  app.add_option("--critical-path-range", range_name_,
                 "Critical path inside the CPU range whose name contains NAME (\"\": the whole trace); in --json")
      ->type_name("NAME");
  app.add_option("--critical-path-instance", range_instance_, "Which of these ranges, counted from 0 (0)")
      ->type_name("N")
      ->check(Checked(CLI::Range(int64_t{0}, INT64_MAX)));
  app.add_flag("--what-if", what_if_, "Simulate what each change would gain: no stragglers, faster communication, ...");
  app.add_option("--what-if-speedup", what_if_speedup_, "How many times faster --what-if makes things (2)")
      ->type_name("K")
      ->check(Checked(CLI::Range(1.01, 1e6)));
  app.add_option("--fabric", fabric_file_,
                 "Compare collectives with the fabric, as measured by lockstep bench collectives --json")
      ->type_name("FILE");
  app.add_flag("--list", list_, "List the passes with the question each answers, and stop");
  app.add_option("--fail-on", fail_on_, "Exit with status 3 when a finding is at least this severe")
      ->type_name("info|warning|critical")
      ->check(Checked(CLI::IsMember({"info", "warning", "critical"})));
}

Status AnalyzeCommand::CheckNames() const {
  std::vector<std::string> known = report::SectionNames();
  known.emplace_back("all");
  for (const std::string& section : sections_) RETURN_IF_ERROR(CheckName(section, "section", known));
  for (const std::string& pass : passes_) RETURN_IF_ERROR(CheckName(pass, "pass", PassNames()));
  return CheckPageFile();
}

Status AnalyzeCommand::CheckPageFile() const {
  if (page_file_.empty()) return {};
  const std::string ending = std::filesystem::path(page_file_).extension().string();
  if (ending != ".html" && ending != ".htm") {
    return Misuse(fmt::format("--output {}: the page is HTML, so its name ends in .html; --json and --csv write data",
                              page_file_));
  }
  return CheckOutputFile(page_file_);
}

Status AnalyzeCommand::WritePage(const model::Run& run, const analysis::AnalysisResult& result, bool partial,
                                 Console& console) {
  const auto start = std::chrono::steady_clock::now();
  const page::PageInput input{run, result, input_.analysis(), partial};
  Progress progress(console.err, console.err_is_terminal, quiet_);
  const auto show = [&progress](size_t done, size_t all) {
    progress.Show([&](double) { return fmt::format("packing the page  {}/{} parts", done, all); });
  };
  RETURN_IF_ERROR(
      WriteOutputFile(page_file_, [&](std::ostream& out) { WriteAnalyzePage(input, page_bytes_, out, show); }));
  page_wall_s_ = SecondsSince(start);
  return {};
}

int AnalyzeCommand::ListPasses(Console& console) const {
  for (const analysis::PassInfo& pass : analysis::Passes())
    console.out << fmt::format("{:<12} {}\n", pass.name, pass.question);
  return kDone;
}

Status AnalyzeCommand::CheckSelection(const model::Run& run, const analysis::AnalysisResult& result) const {
  if (rank_ &&
      std::none_of(run.ranks.begin(), run.ranks.end(), [&](const auto& trace) { return trace.rank.value == *rank_; })) {
    return Misuse(fmt::format("--rank {}: no such rank in these traces (there are {} of them, {} to {})", *rank_,
                              run.ranks.size(), run.ranks.front().rank.value, run.ranks.back().rank.value));
  }
  const auto& steps = result.Get<analysis::Breakdown>().steps;
  if (step_ && std::none_of(steps.begin(), steps.end(), [&](const auto& row) { return row.step_number == *step_; })) {
    return Misuse(fmt::format("--step {}: no such step in these traces{}", *step_,
                              steps.empty() ? "; they mark no steps (try --step-name)" : "; see --section steps"));
  }
  return {};
}

Status AnalyzeCommand::Write(const model::Run& run, const analysis::AnalysisResult& result, bool partial,
                             Console& console) const {
  if (!csv_folder_.empty()) RETURN_IF_ERROR(report::WriteCsv(run, result, csv_folder_));
  if (json_ || format_ == "json") {
    report::WriteJson(run, result, partial, console.out);
    return {};
  }
  if (quiet_ && !page_file_.empty()) return {};  // The page is the answer.
  report::TextOptions text = text_.Options(console, static_cast<size_t>(top_));
  text.sections = sections_;
  text.rank = rank_;
  text.step = step_;
  report::WriteText(run, result, text, console.out);
  return {};
}

void AnalyzeCommand::WriteTimings(const model::Run& run, const analysis::AnalysisResult& result,
                                  Console& console) const {
  uint64_t bytes = 0;
  uint64_t events = 0;
  for (const model::RankTrace& trace : run.ranks) {
    bytes += trace.json_bytes;
    events += trace.event_count;
  }
  const double seconds = std::max(ingest_wall_s_, 1e-9);
  console.err << fmt::format("ingest        {:8.3f} s   {:.0f} MB/s of JSON, {:.2f} M events/s\n", ingest_wall_s_,
                             static_cast<double>(bytes) / seconds / 1e6, static_cast<double>(events) / seconds / 1e6);
  console.err << fmt::format("analysis      {:8.3f} s   of which, all threads added:\n", analysis_wall_s_);
  for (const analysis::PassTiming& pass : result.timings) {
    console.err << fmt::format("  {:<14}{:10.6f} s\n", pass.name, static_cast<double>(pass.cpu_ns) / 1e9);
  }
}

int AnalyzeCommand::ExitStatusOf(const analysis::AnalysisResult& result, bool partial) const {
  if (!fail_on_.empty()) {
    const auto limit = fail_on_ == "critical"  ? analysis::FindingSeverity::kCritical
                       : fail_on_ == "warning" ? analysis::FindingSeverity::kWarning
                                               : analysis::FindingSeverity::kInfo;
    const bool found = std::any_of(result.findings.begin(), result.findings.end(),
                                   [&](const analysis::Finding& finding) { return finding.severity >= limit; });
    if (found) return kFinding;
  }
  return partial ? kPartial : kDone;
}

Result<int> AnalyzeCommand::Run(Console& console) {
  RETURN_IF_ERROR(CheckNames());
  if (list_) return ListPasses(console);
  if (paths_.empty()) return Misuse("analyze needs at least one PATH: a trace file, or a folder with traces");

  std::optional<model::Fabric> fabric;
  if (!fabric_file_.empty()) {
    ASSIGN_OR_RETURN(fabric, ingest::ReadBenchResults(fabric_file_));
    if (!passes_.empty()) passes_.emplace_back("fabric");
  } else if (std::find(passes_.begin(), passes_.end(), "fabric") != passes_.end()) {
    return Misuse("--pass fabric needs --fabric FILE, of: lockstep bench collectives -n N --json > FILE");
  }

  auto start = std::chrono::steady_clock::now();
  input_.ingest().take_operations = true;
  input_.analysis().what_if = what_if_;
  input_.analysis().what_if_speedup = what_if_speedup_;
  ASSIGN_OR_RETURN(model::Run run, input_.Ingest(paths_, console, quiet_));
  ingest_wall_s_ = SecondsSince(start);
  start = std::chrono::steady_clock::now();
  if (range_name_) input_.analysis().critical_path_range = {*range_name_, range_instance_};
  ASSIGN_OR_RETURN(analysis::AnalysisResult result, input_.Analyze(&run, passes_));
  if (fabric) analysis::AddFabric(*fabric, &result);
  analysis_wall_s_ = SecondsSince(start);

  RETURN_IF_ERROR(CheckSelection(run, result));
  if (range_name_ && result.Has<analysis::CriticalPath>() && result.Get<analysis::CriticalPath>().range_paths.empty())
    return Misuse(fmt::format("--critical-path-range '{}' {}: no rank has that range", *range_name_, range_instance_));
  const bool partial = IsPartial(run);
  RETURN_IF_ERROR(Write(run, result, partial, console));
  console.out.flush();
  if (!page_file_.empty()) {
    analysis::FetchEvents(&run);  // The page shows them.
    RETURN_IF_ERROR(WritePage(run, result, partial, console));
  }
  if (timings_) WriteTimings(run, result, console);
  return ExitStatusOf(result, partial);
}

}  // namespace

std::unique_ptr<Subcommand> MakeAnalyze() { return std::make_unique<AnalyzeCommand>(); }

}  // namespace lockstep::cli
