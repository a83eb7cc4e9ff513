#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "analysis/analysis_result.h"
#include "base/cell.h"
#include "present/report/csv_table.h"
#include "present/report/flat_table.h"
#include "present/report/report.h"
#include "present/report/run_tables.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using model::Run;

std::string CsvText(const Cell& cell) {
  struct Visitor {
    std::string operator()(std::monostate) const { return {}; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(uint64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const {
      return value - value == 0.0 ? fmt::format("{}", value) : std::string();  // not finite: not measured
    }
    std::string operator()(const std::string& value) const { return CsvQuoted(value); }
    std::string operator()(const NestedCell& value) const { return CsvQuoted(value.Text()); }
  };
  return std::visit(Visitor{}, cell);
}

void WriteFlat(std::ostream& out, const FlatTable& table) {
  std::vector<Cell> cells;
  for (const std::string_view column : table.columns) cells.emplace_back(std::string(column));
  for (size_t r = 0;; ++r) {
    for (size_t i = 0; i < cells.size(); ++i) out << (i == 0 ? "" : ",") << CsvText(cells[i]);
    out << "\r\n";
    if (r == table.row_count) return;
    cells.clear();
    table.fill(r, &cells);
  }
}

// In the order of CsvTableNames.
std::vector<FlatTable> AllTables(const Run& run, const AnalysisResult& result) {
  constexpr auto kForm = analysis::ColumnPlace::kOnlyInCsv;
  std::vector<FlatTable> tables = FlatTables(run, result, kForm);
  tables.insert(tables.begin(), Flat(RankTable(), {run, result}, kForm));
  tables.push_back(Flat(MemberTable(), {run, result}, kForm));
  tables.push_back(Flat(LedgerTable(), {run, result}, kForm));
  return tables;
}

}  // namespace

std::string CsvQuoted(std::string_view text) {
  const std::string valid = ValidUtf8(text);
  if (valid.find_first_of(",\"\r\n") == std::string::npos) return valid;
  std::string quoted = "\"";
  for (const char c : valid) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

Status WriteCsvTable(const std::string& folder, const FlatTable& table) {
  const std::filesystem::path path = std::filesystem::path(folder) / (std::string(table.name) + ".csv");
  std::filesystem::path temporary = path;
  temporary += ".part";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  WriteFlat(out, table);
  out.close();
  // The file gets its name only when it is whole.
  if (!out.fail() && std::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const std::string reason = std::strerror(errno);
  std::remove(temporary.c_str());
  return Error{.code = ErrorCode::kIo,
               .message = fmt::format("cannot be written ({}); give a folder with room that you may write to", reason),
               .file = path.string()};
}

std::vector<std::string> CsvTableNames() {
  std::vector<std::string> names;
  for (const FlatTable& table : AllTables(Run(), AnalysisResult())) names.emplace_back(table.name);
  return names;
}

Status WriteCsv(const Run& run, const AnalysisResult& result, const std::string& folder,
                const std::vector<std::string>& tables) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return Error{.code = ErrorCode::kIo,
                 .message = fmt::format("cannot be made ({}); give a folder that you may write to", error.message()),
                 .file = folder};
  }
  for (const FlatTable& table : AllTables(run, result)) {
    const bool wanted = tables.empty() || std::find(tables.begin(), tables.end(), table.name) != tables.end();
    if (wanted && (table.pass.empty() || result.Has(table.pass))) RETURN_IF_ERROR(WriteCsvTable(folder, table));
  }
  return {};
}

void PrintCsvTable(const Run& run, const AnalysisResult& result, std::string_view table, std::ostream& out) {
  for (const FlatTable& each : AllTables(run, result)) {
    if (each.name == table) WriteFlat(out, each);
  }
}

}  // namespace lockstep::report
