#include "present/page/html.h"

#include <algorithm>

#include "present/report/utf8.h"

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

std::string EscapeHtmlLines(std::string_view text) {
  std::string escaped;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    escaped += EscapeHtml(text.substr(begin, end - begin)) + '\n';
    begin = end + 1;
  }
  return escaped;
}

}  // namespace lockstep::page
