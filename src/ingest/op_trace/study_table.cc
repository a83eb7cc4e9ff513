#include "ingest/op_trace/study_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "ingest/torch_trace/decimal.h"

namespace lockstep::ingest {
namespace {

enum Field { kStep, kType, kStart, kDuration, kStage, kDataRank, kSequence, kRank, kChunk, kBatch, kGlobal };
struct FieldName {
  std::string_view name;
  bool needed;
};
constexpr std::array<FieldName, 11> kFields = {{{"step", true},
                                                {"optype", true},
                                                {"start_ts", true},
                                                {"duration", true},
                                                {"stage", true},
                                                {"dp_rank", true},
                                                {"seq_id", true},
                                                {"rank", false},
                                                {"mc", false},
                                                {"mb_id", false},
                                                {"gmc", false}}};
constexpr size_t kMaxTypes = 1000;  // Real tables have 14; a column that is none has as many as lines.
constexpr size_t kMaxTypeBytes = 200;
constexpr int32_t kMaxIndex = 1 << 20;  // Of ranks, stages, sequences: larger ones are damage.
constexpr size_t kMaxColumns = 1000;
// 127 years to both sides of the clock's zero, and 16 years: differences of any two instants then fit 64 bits.
constexpr int64_t kMaxStartNs = 4'000'000'000'000'000'000;
constexpr int64_t kMaxDurationNs = 500'000'000'000'000'000;

std::string_view Unquoted(std::string_view cell) {
  while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t')) cell.remove_prefix(1);
  while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t' || cell.back() == '\r')) cell.remove_suffix(1);
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
  return cell;
}

/// No cell of the table holds a comma or a quote, so that a comma always ends one.
void Split(std::string_view line, std::vector<std::string_view>* cells) {
  cells->clear();
  while (cells->size() < kMaxColumns) {
    const size_t comma = line.find(',');
    cells->push_back(Unquoted(line.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    line.remove_prefix(comma + 1);
  }
}

std::vector<int> ColumnsOf(std::string_view line) {
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  std::vector<std::string_view> cells;
  Split(line, &cells);
  std::vector<int> columns;
  for (const FieldName& field : kFields) {
    const auto found = std::find(cells.begin(), cells.end(), field.name);
    columns.push_back(found == cells.end() ? -1 : static_cast<int>(found - cells.begin()));
  }
  return columns;
}

std::optional<int32_t> Index(std::string_view text) {
  const auto value = ParseInt64(text);
  if (!value || *value < 0 || *value > kMaxIndex) return std::nullopt;
  return static_cast<int32_t>(*value);
}

}  // namespace

bool IsStudyHeader(std::string_view line) {
  const std::vector<int> columns = ColumnsOf(line);
  for (size_t i = 0; i < kFields.size(); ++i) {
    if (kFields[i].needed && columns[i] < 0) return false;
  }
  return true;
}

Status StudyTable::TakeHeader(std::string_view line) {
  column_of_ = ColumnsOf(line);
  std::string missing;
  for (size_t i = 0; i < kFields.size(); ++i) {
    if (kFields[i].needed && column_of_[i] < 0)
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", kFields[i].name);
  }
  if (missing.empty()) return {};
  return Error{.code = ErrorCode::kCorruptData,
               .message = fmt::format("its first line names no column {}; an operation trace has them", missing),
               .file = name_};
}

void StudyTable::Skip(std::string_view what, uint64_t line_number, uint64_t byte_offset) {
  model::LedgerEntry entry;
  entry.code = "operation_skipped";
  entry.severity = model::Severity::kError;
  entry.source = name_;
  entry.byte_offset = byte_offset;
  entry.message = fmt::format("line {}: {}; the line was skipped", line_number, what);
  entry.advice = "results that depend on it are simulated without it; write the table again";
  content_.ledger.Add(std::move(entry));
}

uint32_t StudyTable::TypeOf(std::string_view text) {
  const auto found = types_.find(text);
  if (found != types_.end()) return found->second;
  const auto id = static_cast<uint32_t>(types_.size());
  types_.emplace(text, id);
  return id;
}

void StudyTable::TakeLine(std::string_view line, uint64_t line_number, uint64_t byte_offset) {
  if (Unquoted(line).empty()) return;
  Split(line, &row_);
  const auto cell = [&](Field field) -> std::string_view {
    const int column = column_of_[field];
    return column >= 0 && static_cast<size_t>(column) < row_.size() ? row_[static_cast<size_t>(column)]
                                                                    : std::string_view();
  };
  const auto refuse = [&](Field field, const char* what) {
    Skip(fmt::format("{} '{}' is {}", kFields[field].name, Printable(cell(field).substr(0, 40)), what), line_number,
         byte_offset);
  };
  model::Operation operation;
  const auto step = ParseInt64(cell(kStep));
  if (!step) return refuse(kStep, "no whole number");
  operation.step = *step;
  for (const auto& [field, target] : {std::pair(kStage, &operation.stage), std::pair(kDataRank, &operation.data_rank),
                                      std::pair(kSequence, &operation.sequence)}) {
    const auto value = Index(cell(field));
    if (!value) return refuse(field, "no index");
    *target = *value;
  }
  const auto start_ns = DecimalToInt(cell(kStart), 9);
  if (!start_ns || *start_ns > kMaxStartNs || *start_ns < -kMaxStartNs) return refuse(kStart, "no time in seconds");
  const auto duration_ns = DecimalToInt(cell(kDuration), 9);
  if (!duration_ns || *duration_ns < 0 || *duration_ns > kMaxDurationNs) {
    return refuse(kDuration, "no duration in seconds");
  }
  operation.start_ns = *start_ns;
  operation.duration_ns = *duration_ns;
  const std::string_view type = cell(kType);
  if (type.empty() || type.size() > kMaxTypeBytes) return refuse(kType, "no type of operation");
  if (types_.size() == kMaxTypes && types_.count(type) == 0) return refuse(kType, "one type too many");
  operation.type = TypeOf(type);
  const auto rank = Index(cell(kRank));
  rank_known_.push_back(rank.has_value());
  operation.rank = rank.value_or(0);
  operation.model_chunk = Index(cell(kChunk));
  operation.micro_batch = Index(cell(kBatch));
  operation.global_chunk = Index(cell(kGlobal));
  content_.trace.operations.push_back(operation);
}

Result<OperationContent> StudyTable::Finish() {
  model::OperationTrace& trace = content_.trace;
  if (trace.operations.empty()) {
    return Error{.code = ErrorCode::kCorruptData,
                 .message = content_.ledger.entries().empty()
                                ? "has a header and no operation"
                                : "no line is an operation; the first: " + content_.ledger.entries().front().message,
                 .file = name_};
  }
  // Names in order of text, not of appearance: the order of lines must change nothing.
  std::vector<uint32_t> new_ids(types_.size());
  for (const auto& [text, id] : types_) {
    new_ids[id] = static_cast<uint32_t>(trace.types.size());
    trace.types.push_back(ValidUtf8(text));
  }
  int32_t data_ranks = 0;
  for (const model::Operation& operation : trace.operations) data_ranks = std::max(data_ranks, operation.data_rank + 1);
  for (size_t i = 0; i < trace.operations.size(); ++i) {
    model::Operation& operation = trace.operations[i];
    operation.type = new_ids[operation.type];
    // The study numbers its workers so: data-parallel neighbours side by side.
    if (!rank_known_[i]) {
      const int64_t rank = int64_t{operation.stage} * data_ranks + operation.data_rank;
      operation.rank = static_cast<int32_t>(std::min<int64_t>(rank, INT32_MAX));
    }
  }
  SortOperations(&trace);
  return std::move(content_);
}

}  // namespace lockstep::ingest
