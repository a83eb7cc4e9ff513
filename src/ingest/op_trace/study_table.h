#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/op_trace/op_trace.h"

namespace lockstep::ingest {

/// The study's table line by line.
class StudyTable {
 public:
  explicit StudyTable(std::string name) : name_(std::move(name)) {}

  /// The first line. Errors: kCorruptData when a column that is needed is missing.
  Status TakeHeader(std::string_view line);
  /// Any other line; one that is not an operation is counted. `byte_offset`: where it begins.
  void TakeLine(std::string_view line, uint64_t line_number, uint64_t byte_offset);
  void Skip(std::string_view what, uint64_t line_number, uint64_t byte_offset);
  /// Errors: kCorruptData when no line was an operation.
  Result<OperationContent> Finish();
  model::Ledger& ledger() { return content_.ledger; }

 private:
  uint32_t TypeOf(std::string_view text);

  std::string name_;
  OperationContent content_;
  std::vector<int> column_of_;         // by field: column of the file, -1 = not there
  std::vector<std::string_view> row_;  // the present line's cells
  std::map<std::string, uint32_t, std::less<>> types_;
  std::vector<bool> rank_known_;  // by operation
};

/// Whether a header line names the columns that are needed.
bool IsStudyHeader(std::string_view line);

}  // namespace lockstep::ingest
