#include "programs/cli/run_input.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <utility>

#include "analysis/analysis_result.h"
#include "ingest/job/team_ingest.h"
#include "present/report/job_facts.h"
#include "programs/cli/terminal/progress.h"

namespace lockstep::cli {

Error Misuse(std::string message) { return Error{.code = ErrorCode::kInvalidArgument, .message = std::move(message)}; }

CLI::Validator Checked(CLI::Validator validator) {
  validator.description("");
  return validator;
}

void RunInput::DeclareAnalysis(CLI::App& app, bool thresholds) {
  app.option_defaults()->group("Analysis");
  app.add_option("--step-name", analysis_.step_name, "Steps are the annotations of this name (ProfilerStep#N)")
      ->type_name("NAME");
  app.add_flag("--drop-last-step", analysis_.drop_last_step,
               "Leave the last step out, as Holistic Trace Analysis does");
  app.add_option("--communication-kernel", analysis_.communication_kernels,
                 "Count kernels with TEXT in their names as communication; repeatable")
      ->type_name("TEXT");
  app.add_option("--kernel-wait-threshold", kernel_wait_threshold_us_,
                 "Idle gaps below this are kernel wait, microseconds (30)")
      ->type_name("US")
      ->check(Checked(CLI::Range(0.0, 1e9)));
  if (!thresholds) return;
  const CLI::Validator share = Checked(CLI::Range(0.0, 1e6));
  app.add_option("--communication-threshold", analysis_.communication_ratio_threshold,
                 "Finding: exposed communication over compute, as a ratio (0.30)")
      ->type_name("RATIO")
      ->check(share);
  app.add_option("--imbalance-threshold", analysis_.imbalance_ratio_threshold,
                 "Finding: max / mean - 1 over ranks (0.10)")
      ->type_name("RATIO")
      ->check(share);
  app.add_option("--memory-imbalance-threshold", analysis_.memory_imbalance_ratio_threshold,
                 "Finding: max / mean - 1 of peak memory over ranks (0.20)")
      ->type_name("RATIO")
      ->check(share);
}

void RunInput::DeclareRunning(CLI::App& app) {
  app.option_defaults()->group("Running");
  app.add_option("--threads", analysis_.thread_count, "Threads (0: one per processor)")
      ->type_name("N")
      ->check(Checked(CLI::Range(0u, 4096u)));
  app.add_option("--max-json-size", ingest_.limits.max_output_bytes,
                 "Stop reading a file past this many bytes of JSON, such as 64G (1T)")
      ->type_name("SIZE")
      ->transform(Checked(CLI::AsSizeValue(false)));
  app.add_option("--max-compression-ratio", ingest_.limits.max_ratio,
                 "Stop reading a file that unpacks to more than this many times its size: a decompression bomb (2000)")
      ->type_name("N")
      ->check(Checked(CLI::Range(uint64_t{1}, UINT64_MAX)));
}

Result<model::Run> RunInput::Ingest(const std::vector<std::string>& paths, Console& console, bool quiet) {
  Progress progress(console.err, console.err_is_terminal, quiet);
  ingest_.thread_count = analysis_.thread_count;
  ingest_.on_progress = [&](const ingest::IngestProgress& now) { progress.Update(now); };
  Result<model::Run> run =
      console.team != nullptr ? console.team->Run(paths, ingest_) : ingest::IngestRun(paths, ingest_);
  ingest_.on_progress = {};
  // The command line was sound; the files were not: that is a failure, not a misuse.
  if (!run && run.error().code == ErrorCode::kInvalidArgument) run.error().code = ErrorCode::kNotFound;
  return run;
}

Result<analysis::AnalysisResult> RunInput::Analyze(model::Run* run, const std::vector<std::string>& passes) {
  analysis_.kernel_wait_threshold_ns = std::llround(kernel_wait_threshold_us_ * 1000);
  return analysis::Analyze(run, analysis_, passes);
}

bool IsPartial(const model::Run& run) { return ingest::IsPartial(run) || report::FactsOf(run).missing_rank_count > 0; }

}  // namespace lockstep::cli
