#include "programs/cli/comparison_page.h"

#include <sstream>
#include <utility>

#include "base/output_file.h"
#include "present/page/answer_page.h"
#include "present/report/comparison_report.h"

namespace lockstep::cli {

Status WriteComparisonPage(const comparison::Comparison& comparison, const std::string& title, bool partial,
                           const std::string& path) {
  report::TextOptions plain;
  plain.width = 100;
  plain.top = 20;
  std::ostringstream text;
  report::WriteComparisonText(comparison, plain, text);
  model::Ledger ledger;
  for (const auto* run : {&comparison.a, &comparison.b}) {
    for (const model::LedgerEntry& entry : run->ledger) ledger.Add(entry);
  }
  return WriteOutputFile(
      path, page::ComposeAnswerPage({page::PageKind::kCompare, title, page::LeadHtml(comparison.verdict.sentence),
                                     text.str(), partial, std::move(ledger), report::ComparisonDataJson(comparison)}));
}

}  // namespace lockstep::cli
