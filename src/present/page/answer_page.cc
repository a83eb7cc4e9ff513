#include "present/page/answer_page.h"

#include <fmt/format.h>

#include <sstream>

#include "present/page/html.h"

namespace lockstep::page {

std::string LeadHtml(const std::string& sentence) {
  return fmt::format("<section id=\"summary-verdict\"><h2>Verdict</h2>\n<p><strong>{}</strong></p></section>\n",
                     EscapeHtml(sentence));
}

std::string ComposeAnswerPage(const AnswerPage& answer) {
  const PageFrame frame{
      .kind = answer.kind,
      .title = answer.title,
      .summary_html =
          answer.lead_html +
          fmt::format("<section id=\"summary-text\"><h2>Report</h2>\n<pre tabindex=\"0\">{}</pre></section>\n",
                      EscapeHtmlLines(answer.text))};
  const Block block =
      MakeBlock("main", DocumentJson(answer.kind, answer.title, answer.partial, {}, answer.ledger, answer.data_json));
  std::ostringstream page;
  ComposePage(frame, {&block, 1}, page);
  return std::move(page).str();
}

}  // namespace lockstep::page
