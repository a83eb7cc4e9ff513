#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "ingest/kernel_profile/kernel_profile_files.h"
#include "present/page/kernel_profile/kernel_profile_page.h"
#include "present/report/kernel_profile/kernel_profile_report.h"
#include "programs/cli/cli.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {
namespace {

/// `lockstep kernels PATH...`: what Nsight Compute measured of kernels, and what `nsys stats` sums up, over ranks.
class KernelsCommand : public Subcommand {
 public:
  const char* name() const override { return "kernels"; }
  const char* purpose() const override { return "Say what bounds kernels, from tables of ncu and nsys stats"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  std::vector<std::string> paths_;
  bool json_ = false;
  std::string page_file_;
  bool all_ = false;
  TextFlags text_;
};

constexpr const char* kKernelsFooter =
    "PATH is any mix of files and folders: tables of `ncu --csv --page raw` or `--page details`,\n"
    "summaries of `nsys stats --format csv`, plain or compressed; reports of Nsight Compute\n"
    "(.ncu-rep) where ncu is installed. The rank is read from the file's name.\n"
    "Exit status: 0 done; 1 failed; 2 misused; 4 partial: a file could not be read whole.\n"
    "\n"
    "Examples:\n"
    "  lockstep kernels rank0.raw.csv\n"
    "  lockstep kernels profiles/ -o kernels.html";

void KernelsCommand::Declare(CLI::App& app) {
  app.add_option("PATH", paths_, "Files and folders: tables of ncu and nsys stats")->type_name("PATH...");
  app.option_defaults()->group("Output");
  app.add_flag("--json", json_, "One JSON object (lockstep.kernels/1, docs/json.md)");
  app.add_option("-o,--output", page_file_, "Also write a page with the rooflines drawn: one HTML file")
      ->type_name("FILE.html");
  app.add_flag("--all", all_, "Text: every launch, name and rule");
  text_.Declare(app);
  app.footer(kKernelsFooter);
}

Result<int> KernelsCommand::Run(Console& console) {
  if (paths_.empty()) return Misuse("kernels needs files or folders: tables of ncu --csv, summaries of nsys stats");
  RETURN_IF_ERROR(CheckPagePath(page_file_));
  ASSIGN_OR_RETURN(const model::KernelProfiles profiles, ingest::ReadKernelProfiles(paths_));
  if (!page_file_.empty()) RETURN_IF_ERROR(WriteOutputFile(page_file_, page::KernelProfilePage(profiles)));
  if (json_) {
    report::WriteKernelJson(profiles, console.out);
  } else {
    const report::TextOptions text = text_.Options(console, 10);
    report::WriteKernelText(
        profiles, {.colour = text.colour, .columns = text.width, .unicode = text.unicode, .all = all_}, console.out);
  }
  return report::IsPartial(profiles) ? kPartial : kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeKernels() { return std::make_unique<KernelsCommand>(); }

}  // namespace lockstep::cli
