#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "base/output_file.h"
#include "base/small_file.h"
#include "base/unique_fd.h"
#include "present/query/database.h"
#include "present/query/describe.h"
#include "present/query/tables.h"
#include "programs/cli/cli.h"
#include "programs/cli/query/query_output.h"
#include "programs/cli/query/query_prompt.h"
#include "programs/cli/query/query_session.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/terminal/seconds_since.h"

namespace lockstep::cli {
namespace {

/// `lockstep query PATH... SQL`: answers SQL over the events and the passes' tables of a job.
class QueryCommand : public Subcommand {
 public:
  const char* name() const override { return "query"; }
  const char* purpose() const override { return "Answer SQL queries over the data of a run"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  void DeclareOutput(CLI::App& app);
  void DeclareLimits(CLI::App& app);
  Result<int> Describe(Console& console) const;
  /// Parts PATHs from the SQL, which is the last argument, or in the file of -f.
  Status TakeSql();
  int Answer(QuerySession& session, std::ostream& out, Console& console) const;
  Result<int> AnswerIntoFile(QuerySession& session, Console& console) const;

  std::vector<std::string> arguments_;
  std::string sql_;
  std::string sql_file_;
  std::string format_;
  bool json_ = false;
  std::string output_file_;
  int width_ = 0;
  std::string colour_ = "auto";
  bool ascii_ = false;
  bool quiet_ = false;
  bool list_ = false;
  bool reference_ = false;
  std::string describe_;
  bool interactive_ = false;
  double timeout_s_ = 600;
  uint64_t memory_bytes_ = uint64_t{1} << 30;
  RunInput input_;
};

constexpr const char* kQueryExamples =
    "The SQL is SQLite's. It only reads: it can neither write nor open a file.\n"
    "Exit status: 0 done; 1 failed; 2 misused, such as wrong SQL; 4 partial: ranks or\n"
    "parts of files are missing, what there is was answered.\n"
    "\n"
    "Examples:\n"
    "  lockstep query traces/ \"SELECT rank, max(span_ns) FROM steps GROUP BY rank\"\n"
    "  lockstep query traces/ --interactive            a prompt; .help says more";

constexpr size_t kMostSqlBytes = size_t{16} << 20;

Result<std::string> ReadAll(const std::string& path) {
  const bool is_input = path == "-";
  const UniqueFd file(is_input ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!is_input && !file.valid()) {
    return Error{.code = ErrorCode::kNotFound, .message = "cannot be opened for -f", .file = path};
  }
  const auto text = ReadSome(is_input ? STDIN_FILENO : file.get(), kMostSqlBytes + 1);
  if (!text) {
    return Error{
        .code = ErrorCode::kIo, .message = fmt::format("cannot be read: {}", std::strerror(errno)), .file = path};
  }
  if (text->size() > kMostSqlBytes) {
    return Error{.code = ErrorCode::kLimitExceeded, .message = "holds more than 16 MiB of SQL", .file = path};
  }
  return *text;
}

void QueryCommand::Declare(CLI::App& app) {
  app.add_option("PATH", arguments_,
                 "Trace files, folders and archives of them, in any mix; then the SQL, one statement")
      ->type_name("PATH... SQL");
  DeclareOutput(app);
  DeclareLimits(app);
  input_.DeclareAnalysis(app);
  input_.DeclareRunning(app);
  app.footer(kQueryExamples);
}

void QueryCommand::DeclareOutput(CLI::App& app) {
  app.option_defaults()->group("Asking");
  app.add_option("-f,--file", sql_file_, "Read the SQL from this file (-: standard input)")->type_name("FILE");
  app.add_flag("-i,--interactive", interactive_, "Ask one query after another at a prompt");
  app.add_flag("--list", list_, "List the tables and functions, one line each, and stop");
  app.add_option("--describe", describe_, "Print what the columns of this table mean, and stop")->type_name("TABLE");
  app.add_flag("--reference", reference_, "Print all tables, columns and functions in Markdown, and stop");
  app.option_defaults()->group("Output");
  app.add_option("--format", format_, "table (default), csv, json (lockstep.query/1) or ndjson (one object per line)")
      ->type_name("FORMAT")
      ->check(Checked(CLI::IsMember({"table", "csv", "json", "ndjson"})));
  app.add_flag("--json", json_, "The same as --format json");
  app.add_option("-o,--output", output_file_, "Write into this file instead of standard output")->type_name("FILE");
  app.add_option("--width", width_, "Table: columns, 40 to 1000 (the terminal's; without a terminal no limit)")
      ->type_name("COLUMNS")
      ->check(Checked(CLI::Range(40, 1000)));
  app.add_option("--color,--colour", colour_, "When to use colour (auto: on a terminal without NO_COLOR)")
      ->type_name("auto|always|never")
      ->check(Checked(CLI::IsMember({"auto", "always", "never"})));
  app.add_flag("--ascii", ascii_, "Lines in ASCII (default where the locale is not UTF-8)");
  app.add_flag("-q,--quiet", quiet_, "No progress, no count and time on standard error");
}

void QueryCommand::DeclareLimits(CLI::App& app) {
  app.option_defaults()->group("Limits");
  app.add_option("--timeout", timeout_s_, "End a query after this many seconds (600; 0: never)")
      ->type_name("SECONDS")
      ->check(Checked(CLI::Range(0.0, 1e9)));
  app.add_option("--max-memory", memory_bytes_, "Memory for sorting and grouping, such as 4G (1G)")
      ->type_name("SIZE")
      ->transform(Checked(CLI::AsSizeValue(false)));
}

Result<int> QueryCommand::Describe(Console& console) const {
  const int width = width_ > 0 ? width_ : console.Width();
  if (reference_) {
    query::WriteReference(console.out);
  } else if (list_) {
    query::WriteTableList(console.out, width);
  } else {
    const query::Table* table = query::FindTable(describe_);
    if (table == nullptr) {
      return Misuse(
          fmt::format("--describe: there is no table '{}'{}", describe_, DidYouMean(describe_, query::TableNames())));
    }
    query::WriteTableDescription(table->spec(), width, console.out);
  }
  return kDone;
}

Status QueryCommand::TakeSql() {
  if (interactive_ && !sql_file_.empty()) return Misuse("--interactive and -f do not go together");
  if (!sql_file_.empty()) {
    ASSIGN_OR_RETURN(sql_, ReadAll(sql_file_));
  } else if (!interactive_) {
    if (arguments_.size() < 2)
      return Misuse("query needs a PATH and behind it the SQL, in quotes; or -f FILE, or --interactive");
    sql_ = arguments_.back();
    arguments_.pop_back();
  }
  if (arguments_.empty()) return Misuse("query needs at least one PATH: a trace file, or a folder with traces");
  return {};
}

int QueryCommand::Answer(QuerySession& session, std::ostream& out, Console& console) const {
  QueryFormat format;
  format.name = json_ ? "json" : format_.empty() ? "table" : format_;
  const bool on_terminal = console.out_is_terminal && output_file_.empty();
  format.style.width = width_ > 0 ? width_ : on_terminal ? console.TerminalWidth() : 0;
  const ColourMode mode = colour_ == "never"    ? ColourMode::kNever
                          : colour_ == "always" ? ColourMode::kAlways
                                                : ColourMode::kAuto;
  format.style.colour = output_file_.empty() && console.UseColour(mode);
  format.style.unicode = !ascii_ && LocaleIsUtf8();
  if (interactive_) return RunQueryPrompt(session, format, console, quiet_);

  const auto start = std::chrono::steady_clock::now();
  AttentiveBuffer buffer(out);
  std::ostream attentive(&buffer);
  const auto writer = MakeRowWriter(format, session.partial(), attentive);
  const auto summary = session.Run(sql_, *writer);
  if (!summary) {
    out.flush();
    WriteQueryError(summary.error(), sql_, console);
    return ExitStatusOf(summary.error());
  }
  if (!quiet_) {
    console.err << fmt::format("{} row{} in {:.3f} s from {} trace{}\n", summary->row_count,
                               summary->row_count == 1 ? "" : "s", SecondsSince(start), session.trace_count(),
                               session.trace_count() == 1 ? "" : "s");
  }
  return session.partial() ? kPartial : kDone;
}

Result<int> QueryCommand::AnswerIntoFile(QuerySession& session, Console& console) const {
  int status = kFailed;
  const Status written = WriteOutputFile(output_file_, [&](std::ostream& out) {
    status = Answer(session, out, console);
    // A failed query leaves the file as it was; why it failed has been said.
    if (status != kDone && status != kPartial) out.setstate(std::ios::failbit);
  });
  if (status != kDone && status != kPartial) return status;
  if (!written) return written.error();
  return status;
}

Result<int> QueryCommand::Run(Console& console) {
  if (list_ || reference_ || !describe_.empty()) return Describe(console);
  RETURN_IF_ERROR(TakeSql());
  if (!output_file_.empty()) {
    if (interactive_) return Misuse("--interactive writes to standard output; leave -o out");
    RETURN_IF_ERROR(CheckOutputFile(output_file_));
  }
  QuerySession session(input_, arguments_, console, quiet_);
  query::QueryLimits limits;
  if (timeout_s_ > 0) limits.timeout = std::chrono::milliseconds(std::max<int64_t>(1, std::llround(timeout_s_ * 1000)));
  limits.memory_bytes = static_cast<int64_t>(std::min<uint64_t>(memory_bytes_, INT64_MAX));
  RETURN_IF_ERROR(session.Open(limits));
  if (interactive_) {
    RETURN_IF_ERROR(session.Prepare({}));
    return Answer(session, console.out, console);
  }
  // Wrong SQL is told before gigabytes are read.
  if (const auto error = session.Check(sql_)) {
    WriteQueryError(*error, sql_, console);
    return ExitStatusOf(*error);
  }
  RETURN_IF_ERROR(session.Prepare(session.tables()));
  if (output_file_.empty()) return Answer(session, console.out, console);
  return AnswerIntoFile(session, console);
}

}  // namespace

std::unique_ptr<Subcommand> MakeQuery() { return std::make_unique<QueryCommand>(); }

}  // namespace lockstep::cli
