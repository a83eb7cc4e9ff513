#include "present/export/timeline/json_text.h"

#include <cstddef>

#include "base/utf8.h"

namespace lockstep::timeline {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

}  // namespace

void AppendQuoted(std::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    if (c >= 0x80) {
      const Utf8Character character = ReadUtf8(text, 0);
      out->append(character.valid ? text.substr(0, character.length) : "\\ufffd");
      text.remove_prefix(character.valid ? character.length : 1);
      continue;
    }
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(static_cast<char>(c));
    } else if (c < 0x20 || c == 0x7f) {
      out->append("\\u00");
      out->push_back(kHexDigits[c >> 4]);
      out->push_back(kHexDigits[c & 15]);
    } else {
      out->push_back(static_cast<char>(c));
    }
    text.remove_prefix(1);
  }
  out->push_back('"');
}

}  // namespace lockstep::timeline
