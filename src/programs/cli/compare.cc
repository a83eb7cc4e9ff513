#include "analysis/comparison/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/stage_comparison/stage_comparison.h"
#include "base/output_file.h"
#include "ingest/stage_files/stage_summary.h"
#include "present/page/stages/stage_comparison_page.h"
#include "present/report/comparison_report.h"
#include "present/report/stages/stage_comparison_report.h"
#include "programs/cli/cli.h"
#include "programs/cli/comparison_page.h"
#include "programs/cli/run_input.h"
#include "programs/cli/run_names.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {
namespace {

/// `lockstep compare A B`: what became faster or slower from one run to another, and whether it is noise; of traces, or
/// of summaries of stages.
class CompareCommand : public Subcommand {
 public:
  const char* name() const override { return "compare"; }
  const char* purpose() const override {
    return "Say what became faster or slower between two runs, and whether it is noise";
  }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadFlags();
  Result<int> CompareSummaries(Console& console) const;
  Result<comparison::RunProfile> ReadRun(const std::string& path, Console& console);
  int ExitStatusOf(const comparison::Comparison& comparison, bool partial) const;

  std::vector<std::string> paths_;
  bool json_ = false;
  std::string csv_folder_;
  std::string page_file_;
  uint64_t top_ = 5;
  bool quiet_ = false;
  std::string steps_;
  std::optional<int64_t> skip_steps_;
  double confidence_percent_ = 99;
  double minimum_percent_ = 1;
  std::vector<std::string> fail_on_;
  std::optional<double> fail_slower_;  ///< Ratio from which on slower fails.
  bool fail_undecided_ = false;
  comparison::ProfileOptions profile_;
  comparison::CompareOptions options_;
  TextFlags text_;
  RunInput input_;
};

constexpr const char* kCompareFooter =
    "A and B are traces of one job each: a folder, an archive or a single file. The job's\n"
    "step is that of its slowest rank. The steps of the two runs are compared with a rank\n"
    "test that allows for outliers and for steps that depend on the one before\n"
    "(docs/metrics.md#compare).\n"
    "Or they are what 'lockstep run --stages=DIR' kept of two runs, without a trace: folders\n"
    "with a summary.json, or such files. Runs that did not complete, or that differ in world\n"
    "size or --workload, are refused (docs/stages.md#a-gate).\n"
    "Exit status: 0 done; 1 failed; 2 misused; 3 what --fail-on asks for; 4 partial:\n"
    "ranks or parts of files are missing, the rest was compared.\n"
    "\n"
    "Examples:\n"
    "  lockstep compare before/ after/\n"
    "  lockstep compare main/ change/ --fail-on slower:2 --json > difference.json\n"
    "  lockstep compare baseline/summary.json stages/ --fail-on slower:5";

bool ReadNumber(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

void CompareCommand::Declare(CLI::App& app) {
  app.add_option("A B", paths_, "Two runs: a folder, archive or trace file each, or a summary of stages each")
      ->type_name("A B");
  app.option_defaults()->group("Output");
  app.add_flag("--json", json_,
               "One JSON object (lockstep.compare/1, of summaries lockstep.stage_comparison/1, docs/json.md)");
  app.add_option("-o,--output", page_file_,
                 "Also write the page with the pictures: one HTML file that needs no network")
      ->type_name("FILE.html");
  app.add_option("--csv", csv_folder_, "Also write one CSV file per table into this folder")->type_name("DIR");
  app.add_option("--top", top_, "Text: rows per table (5)")
      ->type_name("N")
      ->check(Checked(CLI::Range(uint64_t{1}, uint64_t{1000000})));
  text_.Declare(app);
  app.add_flag("-q,--quiet", quiet_, "No progress on standard error");
  app.option_defaults()->group("Comparison");
  app.add_option("--skip-steps", skip_steps_,
                 "Steps to leave out at the start of each run, as warm-up (1; of summaries a tenth, 5 at least)")
      ->type_name("N")
      ->check(Checked(CLI::Range(int64_t{0}, int64_t{1000000})));
  app.add_option("--steps", steps_, "Only these steps, by their numbers in the traces: N or FIRST-LAST")
      ->type_name("LIST");
  app.add_option("--confidence", confidence_percent_, "Confidence of the intervals and of the verdict, percent (99)")
      ->type_name("PCT")
      ->check(Checked(CLI::Range(50.0, 99.99)));
  app.add_option("--minimum-effect", minimum_percent_, "Ignore differences of the step below this, percent (1)")
      ->type_name("PCT")
      ->check(Checked(CLI::Range(0.0, 100.0)));
  app.add_option("--fail-on", fail_on_,
                 "Exit with status 3 when B is slower (by at least PCT percent), or when the steps are too few, or of "
                 "summaries too noisy, to decide; repeatable")
      ->type_name("slower[:PCT]|undecided");
  input_.DeclareAnalysis(app);
  input_.DeclareRunning(app);
  app.footer(kCompareFooter);
}

Status CompareCommand::ReadFlags() {
  if (paths_.size() != 2) return Misuse(fmt::format("compare needs two runs, A and B; {} given", paths_.size()));
  if (!steps_.empty()) {
    const size_t dash = steps_.find('-', 1);
    int64_t first = 0;
    int64_t last = 0;
    const std::string_view text = steps_;
    const bool sound = ReadNumber(text.substr(0, dash), &first) &&
                       (dash == std::string::npos || ReadNumber(text.substr(dash + 1), &last));
    if (!sound || (dash != std::string::npos && last < first)) {
      return Misuse(fmt::format("--steps {}: expected a step or FIRST-LAST, such as 12-20", steps_));
    }
    profile_.first_step = first;
    profile_.last_step = dash == std::string::npos ? first : last;
  }
  for (const std::string& text : fail_on_) {
    if (text == "undecided") {
      fail_undecided_ = true;
    } else if (text == "slower") {
      fail_slower_ = 0;
    } else if (text.starts_with("slower:")) {
      double percent = -1;
      const auto [end, error] = std::from_chars(text.data() + 7, text.data() + text.size(), percent);
      if (error != std::errc() || end != text.data() + text.size() || !(percent >= 0 && percent <= 1e6)) {
        return Misuse(
            fmt::format("--fail-on {}: expected slower:PCT with percent of the step, such as slower:2.5", text));
      }
      fail_slower_ = percent / 100;
    } else {
      return Misuse(fmt::format("--fail-on {}: expected slower, slower:PCT or undecided", text));
    }
  }
  if (skip_steps_) profile_.skip_steps = *skip_steps_;
  options_.confidence = confidence_percent_ / 100;
  options_.minimum_effect = minimum_percent_ / 100;
  return {};
}

Result<comparison::RunProfile> CompareCommand::ReadRun(const std::string& path, Console& console) {
  ASSIGN_OR_RETURN(model::Run run, input_.Ingest({path}, console, quiet_));
  ASSIGN_OR_RETURN(const analysis::AnalysisResult result, input_.Analyze(&run));
  comparison::RunProfile profile = comparison::MakeRunProfile(path, run, result, input_.analysis(), profile_);
  profile.partial = IsPartial(run);
  if (profile.steps.empty() && profile_.first_step) {
    return Misuse(fmt::format("--steps {}: {} has no such step; see lockstep analyze --section steps", steps_, path));
  }
  return profile;
}

int CompareCommand::ExitStatusOf(const comparison::Comparison& comparison, bool partial) const {
  const comparison::Delta& step = comparison.step;
  const bool slower = comparison.verdict.change == comparison::Change::kSlower;
  if (slower && fail_slower_ && step.ratio().value_or(0) >= *fail_slower_) return kFinding;
  if (fail_undecided_ && comparison.verdict.change == comparison::Change::kUnknown) return kFinding;
  return partial ? kPartial : kDone;
}

Result<int> CompareCommand::CompareSummaries(Console& console) const {
  if (!csv_folder_.empty()) return Misuse("--csv is of traces; of two summaries --json has all");
  ASSIGN_OR_RETURN(model::StageSummary a, ingest::ReadStageSummary(paths_[0]));
  ASSIGN_OR_RETURN(model::StageSummary b, ingest::ReadStageSummary(paths_[1]));
  RETURN_IF_ERROR(stage_comparison::CheckComparable(a, b));
  const stage_comparison::StageComparison compared = stage_comparison::Compare(std::move(a), std::move(b),
                                                                               {.compare = options_,
                                                                                .skip_steps = skip_steps_,
                                                                                .first_step = profile_.first_step,
                                                                                .last_step = profile_.last_step});
  std::optional<stage_comparison::Gate> gate;
  if (fail_slower_) gate = stage_comparison::Decide(compared, *fail_slower_);
  if (!page_file_.empty()) {
    RETURN_IF_ERROR(WriteOutputFile(page_file_, page::StageComparisonPage(compared, gate)));
  }
  if (json_) {
    report::WriteStageComparisonJson(compared, gate, console.out);
  } else {
    report::WriteStageComparisonText(compared, gate, text_.Options(console, static_cast<size_t>(top_)), console.out);
  }
  using stage_comparison::GateResult;
  const bool is_undecided =
      compared.verdict.change == comparison::Change::kUnknown || (gate && gate->result == GateResult::kUndecided);
  const bool fails = (gate && gate->result == GateResult::kFailed) || (fail_undecided_ && is_undecided);
  return fails ? kFinding : kDone;
}

Result<int> CompareCommand::Run(Console& console) {
  RETURN_IF_ERROR(ReadFlags());
  RETURN_IF_ERROR(CheckPagePath(page_file_));
  const bool a_is_summary = ingest::IsStageSummary(paths_[0]);
  if (a_is_summary != ingest::IsStageSummary(paths_[1])) {
    const std::string& other = paths_[a_is_summary ? 1 : 0];
    std::error_code failed;
    if (!std::filesystem::exists(other, failed)) {
      return Error{.code = ErrorCode::kNotFound, .message = "no such file or folder; check the path", .file = other};
    }
    return Misuse(
        fmt::format("{} is a summary of stages and {} is none: give two summaries (lockstep stages DIR --json "
                    "makes one of recordings), or the traces of two runs",
                    paths_[a_is_summary ? 0 : 1], other));
  }
  if (a_is_summary) return CompareSummaries(console);
  // One after the other: a run's events are let go before the next is read.
  ASSIGN_OR_RETURN(comparison::RunProfile a, ReadRun(paths_[0], console));
  ASSIGN_OR_RETURN(comparison::RunProfile b, ReadRun(paths_[1], console));
  const bool partial = a.partial || b.partial;
  const comparison::Comparison comparison = comparison::Compare(std::move(a), std::move(b), options_);
  if (!csv_folder_.empty()) RETURN_IF_ERROR(report::WriteComparisonCsv(comparison, csv_folder_));
  if (!page_file_.empty()) {
    const auto [before, after] = RunNames(paths_[0], paths_[1]);
    RETURN_IF_ERROR(WriteComparisonPage(comparison, fmt::format("{} against {}", after, before), partial, page_file_));
  }
  if (json_) {
    report::WriteComparisonJson(comparison, partial, console.out);
  } else {
    report::WriteComparisonText(comparison, text_.Options(console, static_cast<size_t>(top_)), console.out);
  }
  return ExitStatusOf(comparison, partial);
}

}  // namespace

std::unique_ptr<Subcommand> MakeCompare() { return std::make_unique<CompareCommand>(); }

}  // namespace lockstep::cli
