#include "present/report/section_writer.h"

#include <fmt/format.h>

#include "present/report/text_table.h"
#include "present/report/utf8.h"

namespace lockstep::report {

void SectionWriter::Paragraph(const std::string& text, Paint paint) {
  WriteWrapped(Printable(text), "", "", columns_, out_, paint, style_);
}

void SectionWriter::Section(const std::string& title) { out_ << '\n' << style_(Paint::kStrong, title) << '\n'; }

void SectionWriter::More(size_t count, size_t shown, const char* what) {
  if (shown < count) out_ << style_(Paint::kFaint, fmt::format("  {} more {}: --all", count - shown, what)) << '\n';
}

void SectionWriter::Ledger(const model::Ledger& ledger) {
  if (ledger.entries().empty()) return;
  Section("Not read, or in part");
  for (const model::LedgerEntry& entry : ledger.entries()) {
    std::string text = Printable(entry.source) + (entry.source.empty() ? "" : ": ") + Printable(entry.message);
    if (entry.count > 1) text += fmt::format(" ({} times)", entry.count);
    if (!entry.advice.empty()) text += "; " + entry.advice;
    WriteWrapped(text, fmt::format("  {} ", style_.Bullet()), "    ", columns_, out_);
  }
}

}  // namespace lockstep::report
