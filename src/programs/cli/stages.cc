#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/frontier/job_stages.h"
#include "base/output_file.h"
#include "ingest/stage_files/stage_files.h"
#include "node/jobs/job_stages.h"
#include "present/page/stages/stages_page.h"
#include "present/report/stages/stages_report.h"
#include "programs/cli/cli.h"
#include "programs/cli/node_flags.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"
#include "programs/cli/workload_flag.h"

namespace lockstep::cli {
namespace {

/// `lockstep stages PATH...`, `lockstep stages --job ID`: which rank and which stage of the step cost a job time, from
/// what its ranks recorded.
class StagesCommand : public Subcommand {
 public:
  const char* name() const override { return "stages"; }
  const char* purpose() const override { return "Say which rank and which stage of the step cost a job time"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Result<ingest::StageFiles> ReadRanks() const;

  std::vector<std::string> paths_;
  NodeFlags nodes_;
  std::optional<uint64_t> last_steps_;
  std::string timeout_ = "10s";
  bool json_ = false;
  std::string page_file_;
  std::vector<std::string> workload_;
  size_t top_ = 5;
  TextFlags text_;
};

constexpr uint64_t kLastSteps = 256;

constexpr const char* kStagesFooter =
    "PATH is any mix of folders and files (*.spans) that `lockstep run --stages` or liblockstep wrote,\n"
    "of all ranks; of a job that runs, too. With --job, or other flags that name nodes, the daemons of\n"
    "these nodes tell the newest steps of a job that runs. No clocks are compared: ranks meet in their\n"
    "collectives.\n"
    "Exit status: 0 done; 1 failed; 2 misused; 4 partial: a file could not be read, a node that was\n"
    "asked did not answer or lacks steps or ranks, or no step is whole.\n"
    "\n"
    "Examples:\n"
    "  lockstep run --stages=stages -- torchrun --nproc-per-node 8 train.py\n"
    "  lockstep stages stages/\n"
    "  lockstep stages stages/ -o stages.html\n"
    "  lockstep stages --job 123";

void StagesCommand::Declare(CLI::App& app) {
  app.add_option("PATH", paths_, "Folders and files of all ranks (*.spans)")->type_name("PATH...");
  nodes_.Declare(app);
  app.add_option("--last", last_steps_,
                 fmt::format("With --job: so many of the newest steps of each rank ({})", kLastSteps))
      ->type_name("STEPS")
      ->check(Checked(CLI::Range(uint64_t{1}, control::kMostKeptSteps)));
  app.add_option("--timeout", timeout_, "Time limit for all nodes to answer (10s)")->type_name("TIME");
  app.add_option("--workload", workload_, kWorkloadFlagHelp)->type_name("KEY=VALUE");
  app.option_defaults()->group("Output");
  app.add_flag("--json", json_, "One JSON object (lockstep.stages/1, docs/json.md)");
  app.add_option("--top", top_, "Text: how many steps are listed; 0: all, and all windows")->capture_default_str();
  app.add_option("-o,--output", page_file_,
                 "Also write a page that draws steps, ranks and memory over time: one HTML file")
      ->type_name("FILE.html");
  text_.Declare(app);
  app.footer(kStagesFooter);
}

Result<ingest::StageFiles> StagesCommand::ReadRanks() const {
  if (!nodes_.is_given()) {
    if (paths_.empty()) {
      return Misuse("stages needs a folder or files that `lockstep run --stages` wrote, or the --job that runs");
    }
    if (last_steps_) return Misuse("--last goes with --job: of files all steps are read");
    return ingest::ReadStageFiles(paths_);
  }
  if (!paths_.empty()) return Misuse("PATH and the flags that name nodes (--job, --host) exclude each other");
  ASSIGN_OR_RETURN(const int64_t timeout_ns, ParseTime(timeout_, "--timeout"));
  if (timeout_ns <= 0) return Misuse("--timeout: more than nothing");
  ASSIGN_OR_RETURN(const jobs::Nodes nodes, nodes_.Find());
  return jobs::AskStages(nodes, last_steps_.value_or(kLastSteps), timeout_ns);
}

Result<int> StagesCommand::Run(Console& console) {
  RETURN_IF_ERROR(CheckPagePath(page_file_));
  ASSIGN_OR_RETURN(model::Workload workload, ReadWorkloadFlags(workload_));
  ASSIGN_OR_RETURN(ingest::StageFiles files, ReadRanks());
  if (!workload.empty()) files.facts.workload = std::move(workload);
  const frontier::JobStages job =
      frontier::AssessJob(std::move(files.ranks), std::move(files.ledger), std::move(files.facts));
  if (!page_file_.empty()) RETURN_IF_ERROR(WriteOutputFile(page_file_, page::StagesPage(job)));
  if (json_) {
    report::WriteStagesJson(job, console.out);
  } else {
    report::WriteStagesText(job, text_.Options(console, top_), console.out);
  }
  return report::IsPartial(job) ? kPartial : kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeStages() { return std::make_unique<StagesCommand>(); }

}  // namespace lockstep::cli
