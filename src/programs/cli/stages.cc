#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/frontier/job_stages.h"
#include "base/output_file.h"
#include "ingest/stage_files/stage_files.h"
#include "present/page/stages/stages_page.h"
#include "present/report/stages/stages_report.h"
#include "programs/cli/cli.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {
namespace {

/// `lockstep stages PATH...`: which rank and which stage of the step cost a job time, from what its ranks recorded.
class StagesCommand : public Subcommand {
 public:
  const char* name() const override { return "stages"; }
  const char* purpose() const override { return "Say which rank and which stage of the step cost a job time"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  std::vector<std::string> paths_;
  bool json_ = false;
  std::string page_file_;
  size_t top_ = 5;
  TextFlags text_;
};

constexpr const char* kStagesFooter =
    "PATH is any mix of folders and files (*.spans) that `lockstep run --stages` or liblockstep wrote,\n"
    "of all ranks; of a job that runs, too. No clocks are compared: ranks meet in their collectives.\n"
    "Exit status: 0 done; 1 failed; 2 misused; 4 partial: a file could not be read, or no step is whole.\n"
    "\n"
    "Examples:\n"
    "  lockstep run --stages=stages -- torchrun --nproc-per-node 8 train.py\n"
    "  lockstep stages stages/\n"
    "  lockstep stages stages/ -o stages.html";

void StagesCommand::Declare(CLI::App& app) {
  app.add_option("PATH", paths_, "Folders and files of all ranks (*.spans)")->type_name("PATH...");
  app.option_defaults()->group("Output");
  app.add_flag("--json", json_, "One JSON object (lockstep.stages/1, docs/json.md)");
  app.add_option("--top", top_, "Text: how many steps are listed; 0: all, and all windows")->capture_default_str();
  app.add_option("-o,--output", page_file_,
                 "Also write a page that draws steps, ranks and memory over time: one HTML file")
      ->type_name("FILE.html");
  text_.Declare(app);
  app.footer(kStagesFooter);
}

Result<int> StagesCommand::Run(Console& console) {
  if (paths_.empty()) return Misuse("stages needs a folder or files that `lockstep run --stages` wrote");
  RETURN_IF_ERROR(CheckPagePath(page_file_));
  ASSIGN_OR_RETURN(ingest::StageFiles files, ingest::ReadStageFiles(paths_));
  const frontier::JobStages job = frontier::AssessJob(std::move(files.ranks), std::move(files.ledger));
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
