#pragma once

#include <string>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/analyze.h"
#include "analysis/rank_context.h"
#include "ingest/job/ingest_run.h"
#include "programs/cli/subcommand.h"

namespace CLI {
class Validator;
}

namespace lockstep::cli {

/// An error of the command line, told with a hint at --help; exit status 2.
Error Misuse(std::string message);

/// A validator that adds nothing to the flag's help: ours says in words what is accepted.
CLI::Validator Checked(CLI::Validator validator);

/// What every command that reads traces shares: the flags that say how to read and analyse, reading with a progress
/// line, and the passes. One object serves a command that reads several runs.
class RunInput {
 public:
  /// --step-name, --drop-last-step, --communication-kernel, the thresholds. `thresholds` off: commands that print no
  /// findings.
  void DeclareAnalysis(CLI::App& app, bool thresholds = true);
  /// --threads, --max-json-size, --max-compression-ratio.
  void DeclareRunning(CLI::App& app);

  /// Reads the traces below `paths`. Progress goes to standard error unless `quiet`.
  /// Errors: kNotFound, kCorruptData (ingest::IngestRun); exit status 1.
  Result<model::Run> Ingest(const std::vector<std::string>& paths, Console& console, bool quiet);
  /// Runs the passes named (all when empty) and what they need. Clocks are aligned in `run`.
  Result<analysis::AnalysisResult> Analyze(model::Run* run, const std::vector<std::string>& passes = {});

  analysis::AnalysisOptions& analysis() { return analysis_; }
  ingest::IngestOptions& ingest() { return ingest_; }

 private:
  analysis::AnalysisOptions analysis_;
  ingest::IngestOptions ingest_;
  double kernel_wait_threshold_us_ = 30;
};

/// Whether ranks or parts of files are missing: what there is was printed, exit status 4.
bool IsPartial(const model::Run& run);

}  // namespace lockstep::cli
