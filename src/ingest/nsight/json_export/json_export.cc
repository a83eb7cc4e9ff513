#include "ingest/nsight/json_export/json_export.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "ingest/nsight/json_export/export_lines.h"
#include "ingest/nsight/json_export/line_reader.h"
#include "ingest/nsight/json_export/table_writer.h"
#include "ingest/nsight/rank_environment.h"
#include "ingest/nsight/read_report.h"
#include "ingest/nsight/string_table.h"

namespace lockstep::ingest {
namespace {

using model::Severity;
using nsight::Database;
using nsight::LineReader;
using nsight::MessageLines;
using nsight::ProcessLaunches;
using nsight::ReportNotes;
using nsight::TableWriter;

static_assert(LineReader::kPadding >= simdjson::SIMDJSON_PADDING);

/// Beginnings of the names that tables of exports have.
constexpr const char* kTables[] = {"StringIds", "PROCESSES",    "ThreadNames", "ProcessStreams", "META_DATA_",
                                   "EXPORT_",   "TARGET_INFO_", "ANALYSIS_",   "ENUM_",          "CUPTI_ACTIVITY_",
                                   "NVTX_",     "OSRT_",        "MPI_",        "NCCL_",          "PROFILER_OVERHEAD",
                                   "CUDA_",     "GPU_",         "DIAGNOSTIC_", "SCHED_EVENTS",   "COMPOSITE_EVENTS"};

bool StartsMessages(std::string_view head) { return head.starts_with("{\"Type\":") || head.starts_with("{\"data\":["); }

/// The first line is a flat object that names its table.
bool StartsRows(std::string_view head) {
  constexpr std::string_view kKey = "\"table\":\"";
  if (!head.starts_with("{\"")) return false;
  const size_t at = head.find(kKey);
  if (at == std::string_view::npos || head.substr(0, at).find_first_of("\n[{", 1) != std::string_view::npos) {
    return false;
  }
  const std::string_view name = head.substr(at + kKey.size());
  return std::any_of(std::begin(kTables), std::end(kTables),
                     [&](const char* table) { return name.starts_with(table); });
}

struct Tables {
  std::unique_ptr<Database> database;
  ProcessLaunches launches;
  uint64_t size_bytes = 0;
};

void NoteDamage(const LineReader& lines, uint64_t damaged_count, ReportNotes* notes) {
  if (lines.cut()) notes->Add("damaged_stream", Severity::kError, lines.cut()->message, "what came before was read");
  const uint64_t count = damaged_count + lines.too_long_count();
  if (count == 0) return;
  notes->Add("damaged_line", Severity::kError, "lines that are cut or no part of such an export were left out",
             "copy or export the report again", count);
}

void NoteMessages(const MessageLines& messages, ReportNotes* notes) {
  notes->Add(
      "nsys_no_start", Severity::kInfo,
      "this form of export has no start time of the recording: ranks are aligned by the collectives that they share");
  std::string names;
  uint64_t count = 0;
  for (const auto& [kind, number] : messages.unread()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", Printable(kind));
    count += number;
  }
  if (count > 0) {
    notes->Add("nsys_unread_messages", Severity::kInfo,
               fmt::format("the export also holds messages that are not read: {}", names), "", count);
  }
}

/// Of an environment's text only what ReadLaunch asks for is looked at.
ProcessLaunches LaunchesOf(const Database& database, const MessageLines& messages) {
  nsight::StringTable strings;
  strings.Load(database);
  ProcessLaunches launches;
  for (const auto& [process, environment] : messages.Environments()) {
    const std::string_view text = strings.Of(environment);
    nsight::LaunchFacts facts =
        nsight::ReadLaunch([&](std::string_view name) { return nsight::FindVariable(text, name); });
    if (facts.rank) launches.emplace(process, std::move(facts));
  }
  return launches;
}

Result<Tables> ReadTables(ByteSource& source, const std::string& display_name, const TraceReaderOptions& options,
                          ReportNotes* notes) {
  constexpr uint64_t kLinesBetweenChecks = 4096;
  ASSIGN_OR_RETURN(const std::unique_ptr<TableWriter> writer, TableWriter::Create(display_name));
  MessageLines messages(writer.get());
  LineReader lines(source);
  simdjson::dom::parser parser;
  uint64_t message_count = 0;
  uint64_t row_count = 0;
  uint64_t damaged_count = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool is_line, lines.Next());
    if (!is_line) break;
    if ((message_count + row_count) % kLinesBetweenChecks == 0 && options.cancelled && options.cancelled()) {
      return Error{.code = ErrorCode::kCancelled, .message = "reading was cancelled", .file = display_name};
    }
    simdjson::dom::object line;
    if (parser.parse(lines.line().data(), lines.line().size(), false).get(line)) {
      ++damaged_count;
      continue;
    }
    ASSIGN_OR_RETURN(const bool is_row, nsight::AddRow(line, writer.get()));
    if (is_row) {
      ++row_count;
      continue;
    }
    ASSIGN_OR_RETURN(const bool is_message, messages.Add(line));
    ++(is_message ? message_count : damaged_count);
  }
  if (message_count + row_count == 0) {
    return Error{.code = ErrorCode::kCorruptData,
                 .message = "holds no line of an Nsight Systems export; export the report again",
                 .file = display_name};
  }
  NoteDamage(lines, damaged_count, notes);
  Tables tables;
  tables.size_bytes = lines.byte_count();
  ASSIGN_OR_RETURN(tables.database, writer->Finish());
  if (message_count > 0) {
    NoteMessages(messages, notes);
    tables.launches = LaunchesOf(*tables.database, messages);
  }
  return tables;
}

}  // namespace

bool StartsNsysJson(std::string_view head) { return StartsMessages(head) || StartsRows(head); }

Result<std::vector<TraceContent>> ReadNsysJson(ByteSource& source, const std::string& display_name,
                                               const TraceReaderOptions& options) {
  ReportNotes notes(display_name);
  ASSIGN_OR_RETURN(Tables tables, ReadTables(source, display_name, options, &notes));
  return nsight::ReadReport(
      tables.database.get(),
      {.display_name = display_name, .size_bytes = tables.size_bytes, .launches = tables.launches}, options, &notes);
}

}  // namespace lockstep::ingest
