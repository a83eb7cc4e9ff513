#include "programs/cli/query/query_prompt.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>

#include "base/nearest.h"
#include "present/query/describe.h"
#include "present/query/tables.h"
#include "present/report/utf8.h"
#include "programs/cli/cli.h"
#include "programs/cli/query/line_reader.h"

namespace lockstep::cli {
namespace {

constexpr const char* kHelp =
    "SQL ends with ';' and may take several lines. Beside it:\n"
    "  .tables           tables and functions\n"
    "  .describe TABLE   its columns\n"
    "  .format FORMAT    table, csv, json or ndjson\n"
    "  .help             this\n"
    "  .quit             end (also Ctrl-D); Ctrl-C ends a query\n";

std::atomic<query::StopSign*> running_query{nullptr};
static_assert(std::atomic<query::StopSign*>::is_always_lock_free);

void StopQuery(int) {
  if (query::StopSign* stop = running_query.load()) stop->Ask();
}

// SIGINT ends the query, not the program, while this lives.
class InterruptsQuery {
 public:
  explicit InterruptsQuery(query::StopSign& stop) {
    running_query = &stop;
    struct sigaction action = {};
    action.sa_handler = StopQuery;
    ::sigaction(SIGINT, &action, &before_);  // without SA_RESTART: a line that is typed ends too
  }
  ~InterruptsQuery() {
    ::sigaction(SIGINT, &before_, nullptr);
    running_query = nullptr;
  }
  InterruptsQuery(const InterruptsQuery&) = delete;
  InterruptsQuery& operator=(const InterruptsQuery&) = delete;

 private:
  struct sigaction before_ = {};
};

class Prompt {
 public:
  Prompt(QuerySession& session, QueryFormat format, Console& console, bool quiet)
      : session_(session), format_(std::move(format)), console_(console), quiet_(quiet) {}

  int Run() {
    const bool terminal = ::isatty(STDIN_FILENO) == 1 && console_.out_is_terminal;
    const auto reader = MakeLineReader(terminal, terminal ? HistoryFile("query_history") : "");
    const InterruptsQuery interrupts(session_.stop());
    if (terminal && !quiet_)
      console_.out << fmt::format("{} traces read. SQL ends with ';'; .help says more.\n", session_.trace_count());
    std::string sql;
    while (!done_) {
      console_.out.flush();
      const auto line = reader->Read(sql.empty() ? "lockstep> " : "     ...> ");
      if (!line) break;
      if (reader->interrupted()) {
        sql.clear();
        continue;
      }
      if (sql.empty() && !line->empty() && line->front() == '.') {
        reader->Remember(*line);
        Command(*line);
        continue;
      }
      if (sql.empty() && line->find_first_not_of(" \t") == std::string::npos) continue;
      sql += (sql.empty() ? "" : "\n") + *line;
      if (!IsWholeStatement(sql)) continue;
      reader->Remember(sql);
      Ask(sql);
      sql.clear();
    }
    if (!done_ && sql.find_first_not_of(" \t\n") != std::string::npos) Ask(sql);  // a script without the last ';'
    if (terminal) return session_.partial() ? kPartial : kDone;
    return status_ != kDone ? status_ : session_.partial() ? kPartial : kDone;
  }

 private:
  void Ask(const std::string& sql) {
    const auto failed = [&](const query::QueryError& error) {
      console_.out.flush();
      WriteQueryError(error, sql, console_);
      status_ = ExitStatusOf(error);
    };
    if (const auto error = session_.Check(sql)) return failed(*error);
    if (const Status prepared = session_.Prepare(session_.tables()); !prepared) {
      console_.err << "lockstep: " << prepared.error().ToString() << '\n';
      status_ = kFailed;
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    AttentiveBuffer buffer(console_.out);
    std::ostream attentive(&buffer);
    const auto writer = MakeRowWriter(format_, session_.partial(), attentive);
    const auto summary = session_.Run(sql, *writer);
    if (!summary) return failed(summary.error());
    console_.out.flush();
    if (quiet_) return;
    console_.err << fmt::format("{} row{} in {:.3f} s\n", summary->row_count, summary->row_count == 1 ? "" : "s",
                                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }

  void Command(const std::string& line) {
    const size_t end = line.find_first_of(" \t");
    const std::string name = line.substr(0, end);
    const size_t begin = end == std::string::npos ? end : line.find_first_not_of(" \t", end);
    std::string argument = begin == std::string::npos ? "" : line.substr(begin);
    argument.erase(argument.find_last_not_of(" \t;") + 1);
    if (name == ".quit" || name == ".exit") {
      done_ = true;
    } else if (name == ".help") {
      console_.out << kHelp;
    } else if (name == ".tables") {
      query::WriteTableList(console_.out, console_.Width());
    } else if (name == ".describe" || name == ".schema") {
      Describe(argument);
    } else if (name == ".format") {
      SetFormat(argument);
    } else {
      Complain(fmt::format("unknown command '{}'{}", name,
                           DidYouMean(name, {".tables", ".describe", ".format", ".help", ".quit"})));
    }
  }

  void Describe(const std::string& name) {
    const query::Table* table = query::FindTable(name);
    if (table == nullptr)
      return Complain(fmt::format("there is no table '{}'{}", name, DidYouMean(name, query::TableNames())));
    query::WriteTableDescription(table->spec(), console_.Width(), console_.out);
  }

  void SetFormat(const std::string& name) {
    if (name != "table" && name != "csv" && name != "json" && name != "ndjson")
      return Complain("formats are table, csv, json and ndjson");
    format_.name = name;
  }

  void Complain(const std::string& text) {
    console_.out.flush();
    console_.err << "lockstep: " << report::Printable(text) << '\n';
    status_ = kMisused;
  }

  QuerySession& session_;
  QueryFormat format_;
  Console& console_;
  const bool quiet_;
  bool done_ = false;
  int status_ = kDone;
};

}  // namespace

bool IsWholeStatement(std::string_view sql) { return sqlite3_complete(std::string(sql).c_str()) != 0; }

int RunQueryPrompt(QuerySession& session, QueryFormat format, Console& console, bool quiet) {
  return Prompt(session, std::move(format), console, quiet).Run();
}

}  // namespace lockstep::cli
