#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/hang/diagnosis.h"
#include "base/nearest.h"
#include "base/output_file.h"
#include "ingest/evidence/evidence_files.h"
#include "ingest/evidence/team_evidence.h"
#include "node/jobs/live_job.h"
#include "present/page/hang/hang_page.h"
#include "present/report/hang/hang_report.h"
#include "programs/cli/cli.h"
#include "programs/cli/live_flags.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/terminal/progress.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {
namespace {

/// `lockstep hang [PATH...]`: from a stuck job, or its dumps, stacks and logs, to the rank, the collective and the
/// line.
class HangCommand : public Subcommand {
 public:
  const char* name() const override { return "hang"; }
  const char* purpose() const override { return "Say which rank holds a stuck job up, in which collective and line"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadFlags();
  /// Looks at the running job and keeps what it finds: the folder that is read then.
  Result<std::string> Collect(Console& console);
  bool IsFinding(hang::VerdictKind kind) const;

  std::vector<std::string> paths_;
  LiveFlags live_;
  std::string keep_;  ///< Where live evidence goes; "": a fresh folder here.
  bool json_ = false;
  std::string page_file_;
  bool all_ = false;
  bool quiet_ = false;
  int32_t world_size_ = 0;  ///< 0: what the evidence says.
  unsigned thread_count_ = 0;
  std::vector<std::string> fail_on_;
  std::vector<hang::VerdictKind> findings_;  ///< What fail_on_ names.
  TextFlags text_;
};

using hang::VerdictKind;

constexpr const char* kHangFooter =
    "Without PATH it looks at the running job: on this node at all ranks of this user's job,\n"
    "without a daemon; on other nodes through their lockstepd. It holds a thread only while it\n"
    "copies its stack, and then lets it continue. The evidence stays in a folder.\n"
    "PATH is any mix of files and folders: flight-recorder dumps (pickle or JSON), stacks\n"
    "(faulthandler, py-spy, eu-stack, gdb), logs of the ranks, NCCL logs, RAS answers,\n"
    "plain or compressed, and evidence folders. A file's kind is recognised by its content;\n"
    "its rank by its name (trace_3, rank3.log), its folder's name or its content.\n"
    "Exit status: 0 done, whatever the verdict; 1 failed; 2 misused; 3 a verdict that\n"
    "--fail-on names; 4 partial: a file was damaged or a rank is missing altogether, the\n"
    "verdict uses the rest.\n"
    "\n"
    "Examples:\n"
    "  lockstep hang\n"
    "  lockstep hang --job 123 --via srun -o hang.html\n"
    "  lockstep hang dumps/\n"
    "  lockstep hang dumps/ logs/ --world-size 16 -o hang.html --fail-on hang";

/// Not stuck, or not known to be.
bool IsHang(VerdictKind kind) {
  return kind != VerdictKind::kHealthy && kind != VerdictKind::kStraggler && kind != VerdictKind::kUndecidable;
}

std::string FilesText(size_t done, size_t total, double elapsed_s) {
  return fmt::format("reading  {}/{} files  {:.0f} s", done, total, elapsed_s);
}

void HangCommand::Declare(CLI::App& app) {
  app.add_option("PATH", paths_, "Files and folders of one job: dumps, stacks, logs (the running job)")
      ->type_name("PATH...");
  live_.Declare(app);
  app.option_defaults()->group("Processes");
  app.add_option("--keep", keep_,
                 "Keep the evidence of a running job in this folder (a new one in the temporary folder)")
      ->type_name("DIR");
  app.option_defaults()->group("Output");
  app.add_flag("--json", json_, "One JSON object (lockstep.hang/1, docs/json.md)");
  app.add_option("-o,--output", page_file_,
                 "Also write the page with the pictures: one HTML file that needs no network")
      ->type_name("FILE.html");
  app.add_flag("--all", all_, "Text: every group, rank and stack, not just those that matter");
  text_.Declare(app);
  app.add_flag("-q,--quiet", quiet_, "No progress on standard error");
  app.option_defaults()->group("Diagnosis");
  app.add_option("--world-size", world_size_, "Number of ranks of the job, if neither dumps nor logs contain it")
      ->type_name("N")
      ->check(Checked(CLI::Range(1, 1 << 24)));
  app.add_option(
         "--fail-on", fail_on_,
         "Exit with status 3 on such a verdict: hang (any but healthy, straggler and undecidable), any (any but "
         "healthy), or a kind such as crash; repeatable")
      ->type_name("hang|any|KIND");
  app.add_option("--threads", thread_count_, "Threads (one per core)")
      ->type_name("N")
      ->check(Checked(CLI::Range(1U, 1024U)));
  app.footer(kHangFooter);
}

Status HangCommand::ReadFlags() {
  std::vector<std::string> names = {"hang", "any"};
  for (int i = 0; i < hang::kVerdictKindCount; ++i) {
    names.emplace_back(hang::VerdictKindName(static_cast<VerdictKind>(i)));
  }
  for (const std::string& text : fail_on_) {
    if (std::find(names.begin(), names.end(), text) == names.end()) {
      return Misuse(
          fmt::format("--fail-on {}: expected hang, any or a kind of verdict{}", text, DidYouMean(text, names)));
    }
    for (int i = 0; i < hang::kVerdictKindCount; ++i) {
      const auto kind = static_cast<VerdictKind>(i);
      const bool named = text == "hang"  ? IsHang(kind)
                         : text == "any" ? kind != VerdictKind::kHealthy
                                         : text == hang::VerdictKindName(kind);
      if (named) findings_.push_back(kind);
    }
  }
  return {};
}

bool HangCommand::IsFinding(VerdictKind kind) const {
  return std::find(findings_.begin(), findings_.end(), kind) != findings_.end();
}

Result<std::string> HangCommand::Collect(Console& console) {
  RETURN_IF_ERROR(live_.Read());
  ASSIGN_OR_RETURN(jobs::LiveJob live, live_.Find());
  Progress progress(console.err, console.err_is_terminal, quiet_);
  Result<jobs::Collection> collection =
      jobs::CollectEvidence(live, live_.timeout_ns(), keep_, [&progress](size_t done, size_t total) {
        progress.Show(
            [&](double elapsed_s) { return fmt::format("looking  {}/{} nodes  {:.0f} s", done, total, elapsed_s); });
      });
  progress.Finish();
  if (!collection) return std::move(collection).error();
  if (!quiet_) console.err << jobs::CollectionText(*collection) << '\n';
  return std::move(collection->folder);
}

Result<int> HangCommand::Run(Console& console) {
  RETURN_IF_ERROR(ReadFlags());
  RETURN_IF_ERROR(CheckPagePath(page_file_));
  if (!paths_.empty() && (live_.is_given() || !keep_.empty())) {
    return Misuse(
        "PATH is collected evidence; --job, --pid, --host and --keep are for a running job: give either, not both");
  }
  if (paths_.empty()) {
    ASSIGN_OR_RETURN(std::string folder, Collect(console));
    paths_.push_back(std::move(folder));
  }
  ingest::EvidenceOptions options{.thread_count = thread_count_};
  Progress progress(console.err, console.err_is_terminal, quiet_);
  options.on_progress = [&progress](size_t done, size_t total) {
    progress.Show([&](double elapsed_s) { return FilesText(done, total, elapsed_s); });
  };
  Result<evidence::JobEvidence> read = console.team_evidence != nullptr ? console.team_evidence->Read(paths_, options)
                                                                        : ingest::ReadEvidence(paths_, options);
  progress.Finish();
  if (!read) return std::move(read).error();
  evidence::JobEvidence job = std::move(*read);
  if (world_size_ > 0) job.world_size = world_size_;
  const hang::Diagnosis diagnosis = hang::Diagnose(job, {.thread_count = thread_count_});
  if (!page_file_.empty()) {
    const std::string page = page::ComposeHangPage(diagnosis);
    RETURN_IF_ERROR(WriteOutputFile(page_file_, page));
  }
  if (json_) {
    report::WriteHangJson(diagnosis, console.out);
  } else {
    const report::TextOptions text = text_.Options(console, 10);
    report::WriteHangText(
        diagnosis, {.colour = text.colour, .columns = text.width, .all = all_, .unicode = text.unicode}, console.out);
  }
  if (IsFinding(diagnosis.verdict.kind)) return kFinding;
  return report::IsPartial(diagnosis) ? kPartial : kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeHang() { return std::make_unique<HangCommand>(); }

}  // namespace lockstep::cli
