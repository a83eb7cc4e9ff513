#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "model/ledger.h"

namespace lockstep::ingest::nsight {

/// What was repaired, skipped or guessed of one report: one ledger row per code, counted.
class ReportNotes {
 public:
  explicit ReportNotes(std::string source) : source_(std::move(source)) {}

  void Add(const char* code, model::Severity severity, std::string message, std::string advice = {},
           uint64_t count = 1) {
    ledger_.Add({.code = code,
                 .severity = severity,
                 .source = source_,
                 .count = count,
                 .message = std::move(message),
                 .advice = std::move(advice)});
  }
  /// A walk over `table` that ended early, after so many rows.
  void AddDamagedTable(const char* table, uint64_t rows, std::string_view failure);
  /// Rows of which something was wrong; told once per code with the number of them.
  void CountRow(const char* code) { ++rows_[code]; }
  void WriteRows();
  model::Ledger Take() { return std::move(ledger_); }

 private:
  std::string source_;
  model::Ledger ledger_;
  std::map<std::string, uint64_t> rows_;
};

inline constexpr const char* kNoStart = "nsys_row_without_time";
inline constexpr const char* kNegative = "negative_duration";
inline constexpr const char* kOverflow = "integer_overflow";
inline constexpr const char* kUnfinished = "unfinished_range";
inline constexpr const char* kUnnamedMetric = "nsys_unnamed_metric";

}  // namespace lockstep::ingest::nsight
