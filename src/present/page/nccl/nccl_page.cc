#include "present/page/nccl/nccl_page.h"

#include <fmt/format.h>

#include <sstream>

#include "present/page/answer_page.h"
#include "present/report/nccl/nccl_report.h"

namespace lockstep::page {

std::string NcclPage(const evidence::NcclEvidence& evidence) {
  std::ostringstream text;
  report::WriteNcclText(evidence, {.colour = false, .columns = 120, .unicode = true, .all = true, .topology = true},
                        text);
  const std::string lead =
      evidence.findings.empty() ? "The files tell of nothing that is wrong." : evidence.findings.front().text;
  return ComposeAnswerPage({.kind = PageKind::kNccl,
                            .title = "NCCL logs - lockstep",
                            .lead_html = LeadHtml(lead),
                            .text = text.str(),
                            .partial = report::IsPartial(evidence),
                            .ledger = report::NcclLedger(evidence),
                            .data_json = report::NcclDataJson(evidence)});
}

}  // namespace lockstep::page
