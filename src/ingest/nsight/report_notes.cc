#include "ingest/nsight/report_notes.h"

#include <string_view>

namespace lockstep::ingest::nsight {

void ReportNotes::WriteRows() {
  struct Text {
    std::string_view code;
    const char* message;
    const char* advice;
  };
  constexpr Text kTexts[] = {
      {kNoStart, "rows without a start were left out", "export the report again if there are many"},
      {kNegative, "events that end before they start were given no duration", "their times are doubtful"},
      {kOverflow, "rows whose times no clock can show were left out", "export the report again"},
      {kUnfinished, "NVTX ranges that were never closed were ended with the recording",
       "they were open when it stopped, or the program forgot to pop them"},
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
