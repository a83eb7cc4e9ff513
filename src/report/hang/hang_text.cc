#include <fmt/format.h>

#include "report/hang/hang_report.h"
#include "report/style.h"
#include "report/text_table.h"
#include "report/utf8.h"

namespace lockstep::report {

void WriteHangText(const hang::Diagnosis& diagnosis, const HangTextOptions& options, std::ostream& out) {
  const Style style{options.colour, options.unicode};
  const hang::Verdict& verdict = diagnosis.verdict;
  out << style(Paint::kStrong,
               fmt::format("{}, confidence {:.0f} %", hang::VerdictKindName(verdict.kind), verdict.confidence * 100))
      << '\n';
  WriteWrapped(Printable(verdict.explanation), "", "", options.columns, out, Paint::kStrong, style);
  for (const hang::EvidenceItem& item : diagnosis.evidence) {
    WriteWrapped(Printable(item.fact), "  ", "    ", options.columns, out, Paint::kPlain, style);
  }
  out.flush();
}

}  // namespace lockstep::report
