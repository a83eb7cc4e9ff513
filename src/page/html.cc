#include "page/html.h"

#include "report/utf8.h"

namespace lockstep::page {

std::string EscapeHtml(std::string_view text) {
  const std::string printable = report::Printable(text);
  std::string escaped;
  escaped.reserve(printable.size());
  for (const char c : printable) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

}  // namespace lockstep::page
