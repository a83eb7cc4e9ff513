#include "ingest/nsight/report_notes.h"

#include <fmt/format.h>

#include <string_view>

#include "base/utf8.h"

namespace lockstep::ingest::nsight {

void ReportNotes::AddDamagedTable(const char* table, uint64_t rows, std::string_view failure) {
  Add("damaged_table", model::Severity::kError,
      fmt::format("{} is damaged after {} rows ({}): the rest of it was not read", table, rows, Printable(failure)),
      "copy or export the report again");
}

void ReportNotes::WriteRows() {
  struct Text {
    std::string_view code;
    const char* message;
    const char* advice;
  };
  constexpr Text kTexts[] = {
      {kNoStart, "rows without a start were left out", "export the report again if there are many"},
      {kNegative, "events that end before they start were given no duration", "their times are doubtful"},
      {kOverflow, "rows with impossible times were left out", "export the report again"},
      {kUnfinished, "NVTX ranges that were never closed were ended with the recording",
       "they were open when it stopped, or the program forgot to pop them"},
      {kUnnamedMetric, "samples of metrics that the report does not name were left out", "export the report again"},
  };
  for (const auto& [code, count] : rows_) {
    for (const Text& text : kTexts) {
      if (text.code != code) continue;
      const bool is_usual = code == kUnfinished;
      Add(text.code.data(), is_usual ? model::Severity::kInfo : model::Severity::kWarning, text.message, text.advice,
          count);
    }
  }
  rows_.clear();
}

}  // namespace lockstep::ingest::nsight
