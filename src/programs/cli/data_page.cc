#include "programs/cli/data_page.h"

#include <fmt/format.h>

#include "base/output_file.h"
#include "present/page/html.h"

namespace lockstep::cli {

Status WriteDataPage(const DataPage& page, const std::string& path) {
  const page::PageFrame frame{
      page.kind, page.title,
      fmt::format("<section id=\"summary-verdict\"><h2>Verdict</h2>\n<p><strong>{}</strong></p></section>\n"
                  "<section id=\"summary-text\"><h2>Report</h2>\n<pre tabindex=\"0\">{}</pre></section>\n",
                  page::EscapeHtml(page.sentence), page::EscapeHtmlLines(page.text))};
  const page::Block block =
      page::MakeBlock("main", page::DocumentJson(page.kind, page.title, page.partial, {}, page.ledger, page.data_json));
  return WriteOutputFile(path, [&](std::ostream& out) { page::ComposePage(frame, {&block, 1}, out); });
}

}  // namespace lockstep::cli
