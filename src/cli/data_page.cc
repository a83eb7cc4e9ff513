#include "cli/data_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output_file.h"
#include "page/html.h"

namespace lockstep::cli {

Status WriteDataPage(const DataPage& page, const std::string& path) {
  // EscapeHtml is for one line: it takes line breaks for control characters.
  std::string text;
  for (size_t begin = 0; begin < page.text.size();) {
    const size_t end = std::min(page.text.find('\n', begin), page.text.size());
    text += page::EscapeHtml(std::string_view(page.text).substr(begin, end - begin)) + '\n';
    begin = end + 1;
  }
  const page::PageFrame frame{
      page.kind, page.title,
      fmt::format("<section id=\"summary-verdict\"><h2>Verdict</h2>\n<p><strong>{}</strong></p></section>\n"
                  "<section id=\"summary-text\"><h2>Report</h2>\n<pre tabindex=\"0\">{}</pre></section>\n",
                  page::EscapeHtml(page.sentence), text)};
  const page::Block block =
      page::MakeBlock("main", page::DocumentJson(page.kind, page.title, page.partial, {}, page.ledger, page.data_json));
  return WriteOutputFile(path, [&](std::ostream& out) { page::ComposePage(frame, {&block, 1}, out); });
}

}  // namespace lockstep::cli
