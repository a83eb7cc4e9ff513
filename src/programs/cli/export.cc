#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/rank_context.h"
#include "base/nearest.h"
#include "base/output_file.h"
#include "present/export/flame/flame.h"
#include "present/export/live/board.h"
#include "present/export/otlp/otlp.h"
#include "present/export/tensorboard/tensorboard.h"
#include "present/report/report.h"
#include "present/report/utf8.h"
#include "programs/cli/cli.h"
#include "programs/cli/live/follow_job.h"
#include "programs/cli/live/follow_otlp.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/version.h"

namespace lockstep::cli {
namespace {

/// `lockstep export FORMAT PATH...`: a run in the words of other tools, one nested command per format.
class ExportCommand : public Subcommand {
 public:
  const char* name() const override { return "export"; }
  const char* purpose() const override {
    return "Write a run for other tools: TensorBoard, CSV, speedscope, flame graphs, OTLP";
  }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;

  CLI::App* Add(CLI::App& app, const char* name, const char* purpose, const char* examples);
  void DeclareSelection(CLI::App& app);
  void DeclareStacks(CLI::App& app);
  Status ReadSelection(Ranges* ranks, Ranges* steps) const;
  Result<int> RunTensorBoard(Console& console);
  Result<int> FollowTensorBoard(Console& console);
  Result<int> RunCsv(Console& console);
  using WriteStacks = Status (*)(const model::Run&, const analysis::AnalysisOptions&, const flame::Options&,
                                 std::ostream&);
  Result<int> RunStacks(const char* format, WriteStacks write, Console& console);

  Result<int> RunOtlp(Console& console);

  CLI::App* app_ = nullptr;  // the parser's, which outlives the commands' runs
  std::vector<std::string> paths_;
  std::string folder_;
  std::string output_;
  std::string ranks_;
  std::string steps_;
  std::string by_ = "host";
  std::vector<std::string> tables_;
  uint64_t top_ = 20;
  uint64_t limit_bytes_ = uint64_t{4} << 30;
  bool force_ = false;
  bool per_rank_ = false;
  bool quiet_ = false;
  RunInput input_;
  FollowJob board_follow_;
  FollowOtlp otlp_follow_;
};

constexpr const char* kStatus =
    "Exit status: 0 done; 1 failed; 2 misused; 4 partial: ranks or parts of files are\n"
    "missing, what there is was written.\n"
    "\n"
    "Examples:\n";

constexpr const char* kTensorBoardExamples =
    "  lockstep export tensorboard traces/ --logdir runs/monday\n"
    "  lockstep export tensorboard --follow --job 123 --via srun --logdir runs/123\n"
    "  tensorboard --logdir runs";
constexpr const char* kCsvExamples =
    "  lockstep export csv traces/ --output tables/\n"
    "  lockstep export csv traces/ --table kernels > kernels.csv";
constexpr const char* kSpeedscopeExamples =
    "  lockstep export speedscope traces/ --ranks 3 --steps 12 -o rank3.speedscope.json\n"
    "  lockstep export speedscope traces/ --by device -o device.speedscope.json";
constexpr const char* kCollapsedExamples =
    "  lockstep export collapsed traces/ | flamegraph.pl --countname ns > host.svg\n"
    "  lockstep export collapsed traces/ --by device --per-rank -o device.folded";

constexpr const char* kOtlpExamples =
    "  lockstep export otlp spans/ -o spans.json\n"
    "  lockstep export otlp spans/ |\n"
    "    curl -H 'Content-Type: application/json' --data-binary @- http://localhost:4318/v1/traces\n"
    "  lockstep export otlp --follow --job 123 --via srun --endpoint http://localhost:4318";

std::vector<std::string> FormatNames() { return {"tensorboard", "csv", "speedscope", "collapsed", "otlp"}; }

CLI::App* ExportCommand::Add(CLI::App& app, const char* name, const char* purpose, const char* examples) {
  CLI::App* format = app.add_subcommand(name, purpose);
  format->set_help_flag("-h,--help", "Print this help");
  format->add_option("PATH", paths_, "Trace files, folders and archives of them, in any mix")->type_name("PATH...");
  format->option_defaults()->group("Output");
  format->footer(std::string(kStatus) + examples);
  return format;
}

void ExportCommand::DeclareSelection(CLI::App& app) {
  app.option_defaults()->group("Selection");
  app.add_option("--ranks", ranks_, "Only these ranks, such as 0-3,7")->type_name("LIST");
  app.add_option("--steps", steps_, "Only these steps, by their numbers in the traces")->type_name("LIST");
}

void ExportCommand::DeclareStacks(CLI::App& app) {
  app.add_option("-o,--output", output_, "File to write (standard output)")->type_name("FILE");
  app.add_option("--by", by_,
                 "Weight of a stack: time of the CPU thread, or of the device events that it launched (host)")
      ->type_name("host|device")
      ->check(Checked(CLI::IsMember({"host", "device"})));
}

void ExportCommand::Declare(CLI::App& app) {
  app_ = &app;
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n"
      "  lockstep export tensorboard traces/ --logdir runs/monday\n"
      "  lockstep export collapsed --help");

  CLI::App* board =
      Add(app, "tensorboard", "Scalars and histograms for TensorBoard, a run per rank and one for the job",
          kTensorBoardExamples);
  board->add_option("--logdir", folder_, "Folder to write into; created if missing")->type_name("DIR");
  board->add_flag("--force", force_, "Also write if event files of an earlier export are there");
  board->add_option("--top", top_, "Histograms of this many kernels per rank, those with most time (20)")
      ->type_name("N")
      ->check(Checked(CLI::Range(uint64_t{0}, uint64_t{1000000})));
  DeclareSelection(*board);
  board_follow_.Declare(*board);
  board->option_defaults()->group("A running job");
  board->add_option("--limit", limit_bytes_, "With --follow: write no more than this, such as 500M (4G)")
      ->type_name("SIZE")
      ->transform(Checked(CLI::AsSizeValue(false)));

  CLI::App* csv =
      Add(app, "csv", "The tables of the analysis, a file each, or one table to standard output", kCsvExamples);
  csv->add_option("-o,--output", folder_, "Folder to write into; created if missing")->type_name("DIR");
  csv->add_option("--table", tables_,
                  fmt::format("Only these: {}; a single one goes to standard output without --output",
                              fmt::join(report::CsvTableNames(), ", ")))
      ->type_name("LIST")
      ->delimiter(',');

  CLI::App* speedscope =
      Add(app, "speedscope", "Stacks of every CPU thread in time, for speedscope", kSpeedscopeExamples);
  DeclareStacks(*speedscope);
  DeclareSelection(*speedscope);

  CLI::App* collapsed =
      Add(app, "collapsed", "Folded stacks with their time in ns, for flame graphs", kCollapsedExamples);
  DeclareStacks(*collapsed);
  collapsed->add_flag("--per-rank", per_rank_, "Begin every stack with its rank");
  DeclareSelection(*collapsed);

  CLI::App* otlp =
      Add(app, "otlp", "Spans and requests with a W3C trace context, as OTLP's JSON; a running job as metrics",
          kOtlpExamples);
  otlp->add_option("-o,--output", output_, "File to write (standard output)")->type_name("FILE");
  otlp_follow_.Declare(*otlp);

  for (CLI::App* format : {board, csv, speedscope, collapsed, otlp}) {
    format->option_defaults()->group("Output");
    format->add_flag("-q,--quiet", quiet_, "No progress, nothing on standard error");
    input_.DeclareAnalysis(*format, format == csv);
    input_.DeclareRunning(*format);
  }
}

Status ExportCommand::ReadSelection(Ranges* ranks, Ranges* steps) const {
  if (!ranks_.empty()) {
    ASSIGN_OR_RETURN(*ranks, ParseRanges(ranks_, "--ranks"));
  }
  if (!steps_.empty()) {
    ASSIGN_OR_RETURN(*steps, ParseRanges(steps_, "--steps"));
  }
  return {};
}

Result<int> ExportCommand::RunTensorBoard(Console& console) {
  if (folder_.empty()) return Misuse("export tensorboard needs --logdir DIR: where to write");
  RETURN_IF_ERROR(board_follow_.Read());
  if (board_follow_.is_asked_for()) return FollowTensorBoard(console);
  tensorboard::Options options;
  options.folder = folder_;
  options.kernel_count = static_cast<size_t>(top_);
  options.force = force_;
  RETURN_IF_ERROR(ReadSelection(&options.ranks, &options.steps));
  ASSIGN_OR_RETURN(model::Run run, input_.Ingest(paths_, console, quiet_));
  ASSIGN_OR_RETURN(const analysis::AnalysisResult result, input_.Analyze(&run));
  ASSIGN_OR_RETURN(const tensorboard::Written written,
                   tensorboard::WriteTensorBoard(run, result, input_.analysis(), options));
  if (!quiet_) {
    console.err << fmt::format("{}: {} scalars and {} histograms in {} runs\n", report::Printable(folder_),
                               written.scalar_count, written.histogram_count, written.files.size());
  }
  return IsPartial(run) ? kPartial : kDone;
}

Result<int> ExportCommand::FollowTensorBoard(Console& console) {
  if (!paths_.empty()) return Misuse("--follow looks at a running job: it takes no PATH");
  for (const char* name : {"--ranks", "--steps", "--top"}) {
    if (app_->get_subcommand("tensorboard")->get_option(name)->count() > 0)
      return Misuse(fmt::format("{} is for traces, not for --follow", name));
  }
  export_live::Board board(folder_, limit_bytes_);
  bool is_told = false;
  FollowJob::Sink sink;
  sink.where = "into " + report::Printable(folder_);
  sink.take = [&](const live::JobView& job, int64_t unix_ns) -> Status {
    RETURN_IF_ERROR(board.Take(job, unix_ns));
    if (board.is_full() && !std::exchange(is_told, true)) {
      console.err << fmt::format("lockstep: {}: --limit is reached, nothing more is written",
                                 report::Printable(folder_))
                  << std::endl;
    }
    return {};
  };
  ASSIGN_OR_RETURN(const int status, board_follow_.Run(sink, quiet_, console));
  if (!quiet_) {
    console.err << fmt::format("{}: {} scalars in {} runs\n", report::Printable(folder_), board.scalar_count(),
                               board.run_count());
  }
  return status == kDone && board.is_full() ? kPartial : status;
}

Result<int> ExportCommand::RunCsv(Console& console) {
  const std::vector<std::string> known = report::CsvTableNames();
  for (const std::string& table : tables_) {
    if (std::find(known.begin(), known.end(), table) != known.end()) continue;
    return Misuse(
        fmt::format("unknown table '{}'{} (known: {})", table, DidYouMean(table, known), fmt::join(known, ", ")));
  }
  if (folder_.empty() && tables_.size() != 1)
    return Misuse("export csv needs --output DIR, or one --table NAME to print");
  ASSIGN_OR_RETURN(model::Run run, input_.Ingest(paths_, console, quiet_));
  ASSIGN_OR_RETURN(const analysis::AnalysisResult result, input_.Analyze(&run));
  if (folder_.empty()) {
    report::PrintCsvTable(run, result, tables_.front(), console.out);
    console.out.flush();
  } else {
    RETURN_IF_ERROR(report::WriteCsv(run, result, folder_, tables_));
  }
  return IsPartial(run) ? kPartial : kDone;
}

Result<int> ExportCommand::RunStacks(const char* format, WriteStacks write, Console& console) {
  if (!output_.empty()) RETURN_IF_ERROR(CheckOutputFile(output_));
  flame::Options options;
  options.by = by_ == "device" ? flame::By::kDevice : flame::By::kHost;
  options.per_rank = per_rank_;
  RETURN_IF_ERROR(ReadSelection(&options.ranks, &options.steps));
  const std::string version = VersionText();  // "lockstep 1.2.3"
  options.exporter = "lockstep@" + version.substr(version.find(' ') + 1);
  ASSIGN_OR_RETURN(model::Run run, input_.Ingest(paths_, console, quiet_));
  if (std::string_view(format) == "speedscope") {  // Puts the ranks on one clock.
    ASSIGN_OR_RETURN(const analysis::AnalysisResult result, input_.Analyze(&run, {"collectives"}));
  }
  RETURN_IF_ERROR(flame::CheckSelection(run, input_.analysis(), options));
  if (output_.empty()) {
    RETURN_IF_ERROR(write(run, input_.analysis(), options, console.out));
    console.out.flush();
  } else {
    Status status;
    RETURN_IF_ERROR(
        WriteOutputFile(output_, [&](std::ostream& out) { status = write(run, input_.analysis(), options, out); }));
    RETURN_IF_ERROR(std::move(status));
  }
  return IsPartial(run) ? kPartial : kDone;
}

Result<int> ExportCommand::RunOtlp(Console& console) {
  RETURN_IF_ERROR(otlp_follow_.Read());
  if (otlp_follow_.is_asked_for()) {
    if (!paths_.empty() || !output_.empty()) {
      return Misuse("--follow sends what a running job does to a collector: it takes no PATH and no --output");
    }
    return otlp_follow_.Run(quiet_, console);
  }
  if (!output_.empty()) RETURN_IF_ERROR(CheckOutputFile(output_));
  const std::string version = VersionText();  // "lockstep 1.2.3"
  ASSIGN_OR_RETURN(model::Run run, input_.Ingest(paths_, console, quiet_));
  ASSIGN_OR_RETURN(const analysis::AnalysisResult result, input_.Analyze(&run, {"collectives"}));  // One clock.
  otlp::Written written;
  const auto write = [&](std::ostream& out) {
    written = otlp::WriteOtlp(run, version.substr(version.find(' ') + 1), out);
  };
  if (output_.empty()) {
    write(console.out);
    console.out.flush();
  } else {
    RETURN_IF_ERROR(WriteOutputFile(output_, write));
  }
  if (!quiet_) {
    console.err << fmt::format(
        "{} spans of {} traces{}\n", written.span_count, written.trace_count,
        written.span_count == 0 ? ": none carries a trace context (lockstep.linked_trace, lockstep.request)" : "");
  }
  return IsPartial(run) ? kPartial : kDone;
}

Result<int> ExportCommand::Run(Console& console) {
  const auto parsed = app_->get_subcommands();
  if (parsed.empty()) return Misuse(fmt::format("export needs a format: {}", fmt::join(FormatNames(), ", ")));
  const std::string format = parsed.front()->get_name();
  const bool follows =
      (format == "tensorboard" && board_follow_.is_asked_for()) || (format == "otlp" && otlp_follow_.is_asked_for());
  if (paths_.empty() && !follows)
    return Misuse(fmt::format("export {} needs at least one PATH: a trace file, or a folder with traces", format));
  if (format == "tensorboard") return RunTensorBoard(console);
  if (format == "csv") return RunCsv(console);
  if (format == "otlp") return RunOtlp(console);
  if (format == "speedscope") return RunStacks("speedscope", flame::WriteSpeedscope, console);
  return RunStacks("collapsed", flame::WriteCollapsed, console);
}

}  // namespace

std::unique_ptr<Subcommand> MakeExport() { return std::make_unique<ExportCommand>(); }

}  // namespace lockstep::cli
