#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "ingest/nccl/nccl_files.h"
#include "present/page/nccl/nccl_page.h"
#include "present/report/nccl/nccl_report.h"
#include "programs/cli/cli.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {
namespace {

/// `lockstep nccl-log PATH...`: what NCCL's own logs, topology files and RAS answers tell of a job.
class NcclLogCommand : public Subcommand {
 public:
  const char* name() const override { return "nccl-log"; }
  const char* purpose() const override { return "Say what NCCL's logs, topology files and RAS report about a job"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  std::vector<std::string> paths_;
  bool json_ = false;
  std::string page_file_;
  bool all_ = false;
  bool topology_ = false;
  std::vector<std::string> fail_on_;
  TextFlags text_;
};

constexpr const char* kNcclLogFooter =
    "PATH is any mix of files and folders: output of ranks with NCCL_DEBUG=INFO, files of\n"
    "NCCL_DEBUG_FILE, of NCCL_TOPO_DUMP_FILE and NCCL_GRAPH_DUMP_FILE, answers of ncclras;\n"
    "plain or compressed. Launchers' prefixes, colours and interleaved ranks are understood.\n"
    "Exit status: 0 done; 1 failed; 2 misused; 3 a finding that --fail-on names; 4 partial:\n"
    "a file could not be read whole.\n"
    "\n"
    "Examples:\n"
    "  lockstep nccl-log job.log\n"
    "  lockstep nccl-log logs/ topo.xml --topology -o nccl.html --fail-on error";

void NcclLogCommand::Declare(CLI::App& app) {
  app.add_option("PATH", paths_, "Files and folders of one job: logs, topology files, RAS answers")
      ->type_name("PATH...");
  app.option_defaults()->group("Output");
  app.add_flag("--json", json_, "One JSON object (lockstep.nccl_log/1, docs/json.md)");
  app.add_option("-o,--output", page_file_, "Also write a page with rings and machines drawn: one HTML file")
      ->type_name("FILE.html");
  app.add_flag("--topology", topology_, "Text: draw the machines of topology files as trees");
  app.add_flag("--all", all_, "Text: every communicator, process and channel");
  text_.Declare(app);
  app.option_defaults()->group("Options");
  app.add_option("--fail-on", fail_on_,
                 "Exit with status 3 on such a finding: error, warning (errors too), or a kind such as "
                 "version_mismatch; repeatable")
      ->type_name("error|warning|KIND");
  app.footer(kNcclLogFooter);
}

Result<int> NcclLogCommand::Run(Console& console) {
  if (paths_.empty()) return Misuse("nccl-log needs files of NCCL's: logs, topology files or RAS answers");
  for (const std::string& kind : fail_on_) {
    if (kind.empty() || kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") != std::string::npos) {
      return Misuse(fmt::format("--fail-on {}: expected error, warning or a kind of finding", kind));
    }
  }
  RETURN_IF_ERROR(CheckPagePath(page_file_));
  ASSIGN_OR_RETURN(const evidence::NcclEvidence evidence, ingest::ReadNcclFiles(paths_));
  if (!page_file_.empty()) RETURN_IF_ERROR(WriteOutputFile(page_file_, page::NcclPage(evidence)));
  if (json_) {
    report::WriteNcclJson(evidence, console.out);
  } else {
    const report::TextOptions text = text_.Options(console, 10);
    report::WriteNcclText(
        evidence,
        {.colour = text.colour, .columns = text.width, .unicode = text.unicode, .all = all_, .topology = topology_},
        console.out);
  }
  for (const evidence::NcclLogFinding& finding : evidence.findings) {
    for (const std::string& kind : fail_on_) {
      const bool is_error = finding.severity == "error";
      if (kind == finding.kind || (kind == "error" && is_error) ||
          (kind == "warning" && (is_error || finding.severity == "warning"))) {
        return kFinding;
      }
    }
  }
  return report::IsPartial(evidence) ? kPartial : kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeNcclLog() { return std::make_unique<NcclLogCommand>(); }

}  // namespace lockstep::cli
