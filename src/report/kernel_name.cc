#include "report/kernel_name.h"

#include <cctype>
#include <cstddef>

#include "report/utf8.h"

namespace lockstep::report {
namespace {

void RemoveAll(std::string* text, std::string_view what) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at)) text->erase(at, what.size());
}

// Start of the "(...)" that ends the name, or npos. Brackets are matched from the end.
size_t ParameterListStart(std::string_view name) {
  if (name.empty() || name.back() != ')') return std::string_view::npos;
  size_t depth = 0;
  for (size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) return at;
  }
  return std::string_view::npos;
}

bool EndsIdentifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '>'; }

// Index of the first '<' that opens template arguments, or the size.
size_t HeadLength(std::string_view name) {
  const size_t open = name.find('<');
  return open == std::string_view::npos || open == 0 ? name.size() : open;
}

}  // namespace

std::string StripSignature(std::string_view name) {
  std::string text(name);
  if (text.starts_with("void ")) text.erase(0, 5);
  RemoveAll(&text, "(anonymous namespace)::");
  const size_t start = ParameterListStart(text);
  if (start != std::string::npos && start > 0 && EndsIdentifier(text[start - 1])) text.erase(start);
  return text;
}

std::string ShortenName(std::string_view name, int width, bool unicode) {
  // Names may be megabytes long: what is far beyond any terminal is cut before it is looked at.
  constexpr size_t kLongest = 8192;
  std::string text = Printable(StripSignature(name.substr(0, kLongest)));
  if (DisplayWidth(text) <= width) return text;
  const std::string_view ellipsis = unicode ? "…" : "..";
  size_t head = HeadLength(text);
  // Whole namespaces go from the left while the head is too wide (one column is kept for "<" or the ellipsis).
  bool dropped = false;
  while (DisplayWidth(std::string_view(text).substr(0, head)) + (dropped ? DisplayWidth(ellipsis) + 2 : 0) + 2 >
         width) {
    const size_t colons = text.find("::");
    if (colons == std::string::npos || colons + 2 >= head) break;
    text.erase(0, colons + 2);
    head -= colons + 2;
    dropped = true;
  }
  if (dropped) text = std::string(ellipsis) + "::" + text;
  return Truncate(text, width, ellipsis);
}

}  // namespace lockstep::report
