#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>

#include "analysis/analysis_result.h"
#include "analysis/collectives.h"
#include "base/cell.h"
#include "present/report/csv_table.h"
#include "present/report/flat_table.h"
#include "present/report/job_facts.h"
#include "present/report/report.h"
#include "present/report/utf8.h"

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
    std::string operator()(const NestedCell& value) const { return Quoted(value.Text()); }
  };
  return std::visit(Visitor{}, cell);
}

/// Rows of one table on their way to a stream.
class CsvRows {
 public:
  CsvRows(std::ostream& out, const std::vector<std::string_view>& columns) : out_(out) {
    std::vector<Cell> header;
    for (const std::string_view column : columns) header.emplace_back(std::string(column));
    Row(header);
  }
  void Row(const std::vector<Cell>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) out_ << (i == 0 ? "" : ",") << CsvText(cells[i]);
    out_ << "\r\n";
  }

 private:
  std::ostream& out_;
};

Cell OptionalInt(const std::optional<int64_t>& value) { return value ? Cell(*value) : Cell(); }

void WriteFlat(std::ostream& out, const FlatTable& table) {
  CsvRows file(out, table.columns);
  std::vector<Cell> cells;
  for (size_t r = 0; r < table.row_count; ++r) {
    cells.clear();
    table.fill(r, &cells);
    file.Row(cells);
  }
}

void WriteRanks(std::ostream& out, const Run& run, const AnalysisResult& /*result*/) {
  CsvRows file(out,
               {"rank", "window", "rank_source", "world_size", "host", "device", "backend", "source", "event_count",
                "json_bytes", "first_ns", "last_ns", "clock_offset_ns", "clock_uncertainty_ns", "clock_drift_ppm"});
  for (const model::RankTrace& trace : run.ranks) {
    file.Row({int64_t{trace.rank.value}, int64_t{trace.window}, std::string(model::RankSourceName(trace.rank_source)),
              trace.world_size ? Cell(int64_t{*trace.world_size}) : Cell(), trace.host, DeviceOf(trace).name,
              trace.backend, trace.source, trace.event_count, trace.json_bytes, OptionalInt(trace.first_ns),
              OptionalInt(trace.last_ns), trace.clock.offset_ns, OptionalInt(trace.clock.uncertainty_ns),
              trace.clock.drift_ppm});
  }
}

// One line for each member of each collective.
void WriteCollectives(std::ostream& out, const Run& run, const AnalysisResult& result) {
  CsvRows file(out, {"window", "group", "sequence", "match", "name", "bytes", "group_size", "synchronising", "complete",
                     "rank", "arrival_ns", "end_ns", "wait_ns", "duration_ns", "last_rank", "transfer_ns",
                     "algbw_bytes_per_s", "busbw_bytes_per_s"});
  for (const analysis::CollectiveInstance& instance : result.Get<analysis::Collectives>().instances) {
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
}

void WriteLedger(std::ostream& out, const Run& run, const AnalysisResult& /*result*/) {
  CsvRows file(out, {"code", "severity", "source", "rank", "byte_offset", "count", "message", "advice"});
  for (const model::LedgerEntry& entry : run.ledger.entries()) {
    file.Row({entry.code, std::string(model::SeverityName(entry.severity)), entry.source,
              entry.rank ? Cell(int64_t{*entry.rank}) : Cell(), entry.byte_offset ? Cell(*entry.byte_offset) : Cell(),
              entry.count, entry.message, entry.advice});
  }
}

struct OtherTable {
  std::string_view name;
  std::string_view pass;  // empty: always there
  void (*write)(std::ostream& out, const Run& run, const AnalysisResult& result);
};
constexpr OtherTable kBefore[] = {{"ranks", "", WriteRanks}};
constexpr OtherTable kBehind[] = {
    {"collectives", "collectives", WriteCollectives},
    {"ledger", "", WriteLedger},
};

// Calls `visit(name, pass, write)` for every table, in the order of CsvTableNames.
template <typename Visit>
void ForEachTable(const Run& run, const AnalysisResult& result, Visit visit) {
  const auto other = [&](const OtherTable& table) {
    visit(table.name, table.pass, [&](std::ostream& out) { table.write(out, run, result); });
  };
  for (const OtherTable& table : kBefore) other(table);
  for (const FlatTable& table : FlatTables(run, result, analysis::ColumnPlace::kOnlyInCsv))
    visit(table.name, table.pass, [&](std::ostream& out) { WriteFlat(out, table); });
  for (const OtherTable& table : kBehind) other(table);
}

// The file gets its name only when it is whole.
template <typename Write>
Status WriteFile(const std::filesystem::path& path, Write write) {
  std::filesystem::path temporary = path;
  temporary += ".part";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  write(out);
  out.close();
  if (!out.fail() && std::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const std::string reason = std::strerror(errno);
  std::remove(temporary.c_str());
  return Error{.code = ErrorCode::kIo,
               .message = fmt::format("cannot be written ({}); give a folder with room that you may write to", reason),
               .file = path.string()};
}

}  // namespace

Status WriteCsvTable(const std::string& folder, const FlatTable& table) {
  return WriteFile(std::filesystem::path(folder) / (std::string(table.name) + ".csv"),
                   [&](std::ostream& out) { WriteFlat(out, table); });
}

std::vector<std::string> CsvTableNames() {
  std::vector<std::string> names;
  ForEachTable(Run(), AnalysisResult(),
               [&](std::string_view name, std::string_view, const auto&) { names.emplace_back(name); });
  return names;
}

Status WriteCsv(const Run& run, const AnalysisResult& result, const std::string& folder,
                const std::vector<std::string>& tables) {
  const std::filesystem::path path(folder);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return Error{.code = ErrorCode::kIo,
                 .message = fmt::format("cannot be made ({}); give a folder that you may write to", error.message()),
                 .file = folder};
  }
  Status status;
  ForEachTable(run, result, [&](std::string_view name, std::string_view pass, const auto& write) {
    const bool wanted = tables.empty() || std::find(tables.begin(), tables.end(), name) != tables.end();
    if (!status || !wanted || (!pass.empty() && !result.Has(pass))) return;
    status = WriteFile(path / (std::string(name) + ".csv"), write);
  });
  return status;
}

void PrintCsvTable(const Run& run, const AnalysisResult& result, std::string_view table, std::ostream& out) {
  ForEachTable(run, result, [&](std::string_view name, std::string_view, const auto& write) {
    if (name == table) write(out);
  });
}

}  // namespace lockstep::report
