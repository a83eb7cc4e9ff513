#include "present/report/kernel_name.h"

#include <cctype>
#include <cstddef>

#include "present/report/utf8.h"

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

bool InIdentifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Every "a::b::Name" becomes "Name", in template arguments too; "> >" becomes ">>". "::" behind ">" or ")" stays.
std::string StripNamespaces(std::string_view text) {
  std::string short_text;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("::") && !short_text.empty() && InIdentifier(short_text.back())) {
      while (!short_text.empty() && InIdentifier(short_text.back())) short_text.pop_back();
      ++at;
    } else if (text[at] != ' ' || at + 1 >= text.size() || text[at + 1] != '>') {
      short_text += text[at];
    }
  }
  return short_text;
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
  const std::string text = Printable(StripSignature(name.substr(0, kLongest)));
  if (DisplayWidth(text) <= width) return text;
  return Truncate(StripNamespaces(text), width, unicode ? "…" : "..");
}

}  // namespace lockstep::report
