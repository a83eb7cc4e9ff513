#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>

#include "report/csv_table.h"
#include "report/report.h"
#include "report/tables.h"
#include "report/utf8.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using model::Run;

// RFC 4180: quotes around what holds a comma, a quote or a line break; quotes are doubled; lines end in CR LF.
std::string Quoted(std::string_view text) {
  const std::string valid = ValidUtf8(text);
  if (valid.find_first_of(",\"\r\n") == std::string::npos) return valid;
  std::string quoted = "\"";
  for (const char c : valid) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string CsvText(const Cell& cell) {
  struct Visitor {
    std::string operator()(std::monostate) const { return {}; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(uint64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const {
      return value - value == 0.0 ? fmt::format("{}", value) : std::string();  // not finite: not measured
    }
    std::string operator()(const std::string& value) const { return Quoted(value); }
  };
  return std::visit(Visitor{}, cell);
}

class CsvFile {
 public:
  CsvFile(std::filesystem::path path, const std::vector<std::string_view>& columns)
      : path_(std::move(path)), temporary_(path_), out_() {
    temporary_ += ".part";
    out_.open(temporary_, std::ios::binary | std::ios::trunc);
    std::vector<Cell> header;
    for (const std::string_view column : columns) header.emplace_back(std::string(column));
    Row(header);
  }
  void Row(const std::vector<Cell>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) out_ << (i == 0 ? "" : ",") << CsvText(cells[i]);
    out_ << "\r\n";
  }
  // The file gets its name only when it is whole.
  Status Finish() {
    out_.close();
    if (!out_.fail()) std::rename(temporary_.c_str(), path_.c_str()) == 0 || (failed_ = true);
    if (!out_.fail() && !failed_) return {};
    const std::string reason = std::strerror(errno);
    std::remove(temporary_.c_str());
    return Error{
        .code = ErrorCode::kIo,
        .message = fmt::format("cannot be written ({}); give --csv a folder with room that you may write to", reason),
        .file = path_.string()};
  }

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::ofstream out_;
  bool failed_ = false;
};

Cell OptionalInt(const std::optional<int64_t>& value) { return value ? Cell(*value) : Cell(); }

std::string Joined(const std::vector<int32_t>& ranks) { return fmt::format("{}", fmt::join(ranks, " ")); }

Status WriteRanks(const std::filesystem::path& folder, const Run& run) {
  CsvFile file(folder / "ranks.csv",
               {"rank", "window", "rank_source", "world_size", "host", "device", "backend", "source", "event_count",
                "json_bytes", "first_ns", "last_ns", "clock_offset_ns", "clock_uncertainty_ns", "clock_drift_ppm"});
  for (const model::RankTrace& trace : run.ranks) {
    file.Row({int64_t{trace.rank.value}, int64_t{trace.window}, std::string(model::RankSourceName(trace.rank_source)),
              trace.world_size ? Cell(int64_t{*trace.world_size}) : Cell(), trace.host, DeviceOf(trace).name,
              trace.backend, trace.source, trace.event_count, trace.json_bytes, OptionalInt(trace.first_ns),
              OptionalInt(trace.last_ns), trace.clock.offset_ns, OptionalInt(trace.clock.uncertainty_ns),
              trace.clock.drift_ppm});
  }
  return file.Finish();
}

// One line for each member of each collective.
Status WriteCollectives(const std::filesystem::path& folder, const Run& run, const AnalysisResult& result) {
  CsvFile file(folder / "collectives.csv",
               {"window", "group", "sequence", "match", "name", "bytes", "group_size", "synchronising", "complete",
                "rank", "arrival_ns", "end_ns", "wait_ns", "duration_ns", "last_rank", "transfer_ns",
                "algbw_bytes_per_s", "busbw_bytes_per_s"});
  for (const analysis::CollectiveInstance& instance : result.collectives.instances) {
    for (const analysis::CollectiveMember& member : instance.members) {
      file.Row({int64_t{instance.window}, instance.group, instance.sequence,
                std::string(analysis::MatchBasisName(instance.basis)), instance.name, OptionalInt(instance.bytes),
                instance.group_size ? Cell(int64_t{*instance.group_size}) : Cell(), instance.synchronising,
                instance.complete, int64_t{run.ranks[member.rank_index].rank.value}, member.arrival_ns, member.end_ns,
                OptionalInt(member.wait_ns), member.duration_ns,
                instance.last_rank_index ? Cell(int64_t{run.ranks[*instance.last_rank_index].rank.value}) : Cell(),
                OptionalInt(instance.transfer_ns),
                instance.algbw_bytes_per_s ? Cell(*instance.algbw_bytes_per_s) : Cell(),
                instance.busbw_bytes_per_s ? Cell(*instance.busbw_bytes_per_s) : Cell()});
    }
  }
  return file.Finish();
}

Status WriteStragglers(const std::filesystem::path& folder, const Run& run, const AnalysisResult& result) {
  CsvFile file(folder / "stragglers.csv",
               {"rank", "window", "collective_count", "last_count", "last_ratio", "wait_ns", "wait_given_ns",
                "delay_ns", "chronic", "step_count", "late_step_count", "first_activity", "first_activity_excess_ns"});
  for (const analysis::StragglerRow& row : result.stragglers.rows) {
    const model::RankTrace& trace = run.ranks[row.rank_index];
    const bool known = !row.activities.empty();
    file.Row({int64_t{trace.rank.value}, int64_t{trace.window}, row.collective_count, row.last_count, row.last_ratio,
              row.wait_ns, row.wait_given_ns, row.delay_ns, row.chronic, row.step_count, row.late_step_count,
              known ? Cell(row.activities[0].name) : Cell(), known ? Cell(row.activities[0].excess_ns) : Cell()});
  }
  return file.Finish();
}

Status WriteImbalance(const std::filesystem::path& folder, const Run& run, const AnalysisResult& result) {
  CsvFile file(folder / "imbalance.csv", {"quantity", "mean", "min", "max", "ratio", "min_rank", "max_rank"});
  for (const analysis::ImbalanceRow& row : result.imbalance.rows) {
    file.Row({row.quantity, row.mean, row.min, row.max, row.ratio ? Cell(*row.ratio) : Cell(),
              int64_t{run.ranks[row.min_rank_index].rank.value}, int64_t{run.ranks[row.max_rank_index].rank.value}});
  }
  return file.Finish();
}

Status WriteFindings(const std::filesystem::path& folder, const AnalysisResult& result) {
  CsvFile file(folder / "findings.csv", {"id", "severity", "ranks", "title", "evidence", "advice", "gain_ns_per_step"});
  for (const analysis::Finding& finding : result.findings) {
    std::string evidence;
    for (const analysis::Evidence& item : finding.evidence) evidence += (evidence.empty() ? "" : "; ") + item.text;
    file.Row({finding.id, std::string(analysis::FindingSeverityName(finding.severity)), Joined(finding.ranks),
              finding.title, evidence, fmt::format("{}", fmt::join(finding.advice, "; ")),
              OptionalInt(finding.gain_ns_per_step)});
  }
  return file.Finish();
}

Status WriteLedger(const std::filesystem::path& folder, const model::Ledger& ledger) {
  CsvFile file(folder / "ledger.csv",
               {"code", "severity", "source", "rank", "byte_offset", "count", "message", "advice"});
  for (const model::LedgerEntry& entry : ledger.entries()) {
    file.Row({entry.code, std::string(model::SeverityName(entry.severity)), entry.source,
              entry.rank ? Cell(int64_t{*entry.rank}) : Cell(), entry.byte_offset ? Cell(*entry.byte_offset) : Cell(),
              entry.count, entry.message, entry.advice});
  }
  return file.Finish();
}

}  // namespace

Status WriteCsvTable(const std::string& folder_name, const FlatTable& table) {
  const std::filesystem::path folder = folder_name;
  CsvFile file(folder / (std::string(table.name) + ".csv"), table.columns);
  std::vector<Cell> cells;
  for (size_t r = 0; r < table.row_count; ++r) {
    cells.clear();
    table.fill(r, &cells);
    file.Row(cells);
  }
  return file.Finish();
}

Status WriteCsv(const Run& run, const AnalysisResult& result, const std::string& folder) {
  const std::filesystem::path path(folder);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return Error{
        .code = ErrorCode::kIo,
        .message = fmt::format("cannot be made ({}); give --csv a folder that you may write to", error.message()),
        .file = folder};
  }
  RETURN_IF_ERROR(WriteRanks(path, run));
  for (const FlatTable& table : FlatTables(run, result)) {
    if (result.Has(table.pass)) RETURN_IF_ERROR(WriteCsvTable(path, table));
  }
  if (result.Has("collectives")) RETURN_IF_ERROR(WriteCollectives(path, run, result));
  if (result.Has("stragglers")) RETURN_IF_ERROR(WriteStragglers(path, run, result));
  if (result.Has("imbalance")) RETURN_IF_ERROR(WriteImbalance(path, run, result));
  RETURN_IF_ERROR(WriteFindings(path, result));
  return WriteLedger(path, run.ledger);
}

}  // namespace lockstep::report
