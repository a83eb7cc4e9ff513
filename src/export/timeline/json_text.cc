#include "export/timeline/json_text.h"

#include <cstddef>

namespace lockstep::timeline {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

/// Length of the UTF-8 sequence at the beginning of `text` (not empty); 0 when there is none.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF.
  const unsigned char second = byte(1);
  const bool bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                   (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return bad ? 0 : length;
}

}  // namespace

void AppendQuoted(std::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    if (c >= 0x80) {
      const size_t length = SequenceLength(text);
      if (length == 0) {
        out->append("\\ufffd");
        text.remove_prefix(1);
      } else {
        out->append(text.substr(0, length));
        text.remove_prefix(length);
      }
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
