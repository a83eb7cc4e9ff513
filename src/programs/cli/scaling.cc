#include "analysis/comparison/scaling.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "base/output_file.h"
#include "present/page/answer_page.h"
#include "present/report/scaling_report.h"
#include "programs/cli/cli.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {
namespace {

/// `lockstep scaling RUN1 RUN2 RUN4...`: speed-up, efficiency and what bounds the next doubling.
class ScalingCommand : public Subcommand {
 public:
  const char* name() const override { return "scaling"; }
  const char* purpose() const override { return "Say how a job scales over runs of several sizes, and what bounds it"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Result<comparison::ScalingInput> ReadRun(const std::string& text, Console& console);

  std::vector<std::string> runs_;
  std::vector<std::string> no_sync_;
  bool weak_ = false;
  bool strong_ = false;
  std::optional<double> items_;
  bool json_ = false;
  std::string csv_folder_;
  std::string page_file_;
  bool quiet_ = false;
  double confidence_percent_ = 95;
  comparison::ProfileOptions profile_;
  TextFlags text_;
  RunInput input_;
};

constexpr const char* kScalingFooter =
    "A run is the traces of one job: a folder, archive or file. Its size is the world\n"
    "size that the traces state, or the number in front: 8=traces/. Weak scaling (the\n"
    "default): each rank's work stays the same, and the ideal step time is constant.\n"
    "Strong scaling: the job's work stays the same, and the ideal step time falls with\n"
    "the number of ranks (docs/metrics.md#scaling).\n"
    "Exit status: 0 done; 1 failed; 2 misused; 4 partial: ranks or parts of files are\n"
    "missing, the rest was used.\n"
    "\n"
    "Examples:\n"
    "  lockstep scaling run1/ run2/ run4/ --items-per-step 32\n"
    "  lockstep scaling run1/ run8/ --strong --no-sync run8_nosync/ --csv tables/";

void ScalingCommand::Declare(CLI::App& app) {
  app.add_option("RUN", runs_, "Two runs or more, of different sizes: [N=]PATH")->type_name("[N=]RUN...");
  app.option_defaults()->group("Output");
  app.add_flag("--json", json_, "One JSON object (lockstep.scaling/1, docs/json.md)");
  app.add_option("-o,--output", page_file_,
                 "Also write the page with the pictures: one HTML file that needs no network")
      ->type_name("FILE.html");
  app.add_option("--csv", csv_folder_, "Also write one CSV file per table into this folder")->type_name("DIR");
  text_.Declare(app);
  app.add_flag("-q,--quiet", quiet_, "No progress on standard error");
  app.option_defaults()->group("Scaling");
  CLI::Option* weak = app.add_flag("--weak", weak_, "Each rank's work is the same in every run (default)");
  app.add_flag("--strong", strong_, "The job's work is the same in every run")->excludes(weak);
  app.add_option("--items-per-step", items_,
                 "Samples or tokens per step, for throughput: of one rank (weak) or of the job (strong)")
      ->type_name("N")
      ->check(Checked(CLI::Range(0.0, 1e18)));
  app.add_option("--no-sync", no_sync_,
                 "The same job with gradient synchronisation off; its difference to the run of the same size is the "
                 "cost of communication; repeatable")
      ->type_name("[N=]RUN");
  app.add_option("--skip-steps", profile_.skip_steps, "Steps to leave out at the start of each run, as warm-up (1)")
      ->type_name("N")
      ->check(Checked(CLI::Range(int64_t{0}, int64_t{1000000})));
  app.add_option("--confidence", confidence_percent_, "Confidence of the intervals, percent (95)")
      ->type_name("PCT")
      ->check(Checked(CLI::Range(50.0, 99.99)));
  input_.DeclareAnalysis(app, false);
  input_.DeclareRunning(app);
  app.footer(kScalingFooter);
}

Result<comparison::ScalingInput> ScalingCommand::ReadRun(const std::string& text, Console& console) {
  comparison::ScalingInput input;
  std::string path = text;
  const size_t equals = text.find('=');
  if (equals != std::string::npos && !std::filesystem::exists(text)) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + equals, input.ranks);
    if (error != std::errc() || end != text.data() + equals || input.ranks < 1) {
      return Misuse(fmt::format("{}: expected a number of ranks in front of '=', such as 8=traces/", text));
    }
    path = text.substr(equals + 1);
  }
  ASSIGN_OR_RETURN(model::Run run, input_.Ingest({path}, console, quiet_));
  ASSIGN_OR_RETURN(const analysis::AnalysisResult result, input_.Analyze(&run, {"breakdown"}));
  input.profile = comparison::MakeRunProfile(path, run, result, input_.analysis(), profile_);
  input.profile.partial = IsPartial(run);
  if (input.ranks == 0) input.ranks = input.profile.world_size;
  return input;
}

Result<int> ScalingCommand::Run(Console& console) {
  if (runs_.size() < 2)
    return Misuse(fmt::format("scaling needs two runs of different sizes or more; {} given", runs_.size()));
  RETURN_IF_ERROR(CheckPagePath(page_file_));
  profile_.names = false;
  std::vector<comparison::ScalingInput> runs;
  std::vector<comparison::ScalingInput> no_sync;
  for (const std::string& text : runs_) {
    ASSIGN_OR_RETURN(comparison::ScalingInput input, ReadRun(text, console));
    runs.push_back(std::move(input));
  }
  for (const std::string& text : no_sync_) {
    ASSIGN_OR_RETURN(comparison::ScalingInput input, ReadRun(text, console));
    no_sync.push_back(std::move(input));
  }
  comparison::ScalingOptions options;
  options.kind = strong_ ? comparison::Scaling::kStrong : comparison::Scaling::kWeak;
  options.confidence = confidence_percent_ / 100;
  options.items_per_step = items_;
  ASSIGN_OR_RETURN(const comparison::ScalingCurve curve,
                   comparison::MeasureScaling(std::move(runs), std::move(no_sync), options));
  if (!csv_folder_.empty()) RETURN_IF_ERROR(report::WriteScalingCsv(curve, csv_folder_));
  if (!page_file_.empty()) {
    report::TextOptions plain;
    plain.width = 100;
    plain.top = 20;
    std::ostringstream text;
    report::WriteScalingText(curve, plain, text);
    model::Ledger ledger;
    for (const auto& run : curve.ledgers) {
      for (const model::LedgerEntry& entry : run.second) ledger.Add(entry);
    }
    const std::string page = page::ComposeAnswerPage(
        {page::PageKind::kScaling, fmt::format("Scaling over {} runs", runs_.size()), page::LeadHtml(curve.sentence),
         text.str(), curve.partial, std::move(ledger), report::ScalingDataJson(curve)});
    RETURN_IF_ERROR(WriteOutputFile(page_file_, page));
  }
  if (json_) {
    report::WriteScalingJson(curve, console.out);
  } else {
    report::WriteScalingText(curve, text_.Options(console, 10), console.out);
  }
  return curve.partial ? kPartial : kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeScaling() { return std::make_unique<ScalingCommand>(); }

}  // namespace lockstep::cli
