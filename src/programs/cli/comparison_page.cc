#include "programs/cli/comparison_page.h"

#include <sstream>
#include <utility>

#include "present/report/comparison_report.h"
#include "programs/cli/data_page.h"

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
  return WriteDataPage({page::PageKind::kCompare, title, comparison.verdict.sentence, text.str(),
                        report::ComparisonDataJson(comparison), std::move(ledger), partial},
                       path);
}

}  // namespace lockstep::cli
