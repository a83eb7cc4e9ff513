#include "report/utf8.h"

#include <cstddef>
#include <cstdint>

namespace lockstep::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Decoded {
  uint32_t code_point = 0;
  size_t length = 0;  // bytes taken
  bool valid = false;
};

// Reads one character at `at`; a bad sequence takes its maximal valid beginning, at least one byte.
Decoded Decode(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return {lead, 1, true};
  size_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  uint32_t code_point = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    code_point = lead & 0x1Fu;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    code_point = lead & 0x0Fu;
    if (lead == 0xE0) low = 0xA0;   // overlong
    if (lead == 0xED) high = 0x9F;  // surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    code_point = lead & 0x07u;
    if (lead == 0xF0) low = 0x90;   // overlong
    if (lead == 0xF4) high = 0x8F;  // beyond U+10FFFF
  } else {
    return {0, 1, false};
  }
  for (size_t i = 1; i < length; ++i) {
    if (at + i >= text.size() || byte(at + i) < low || byte(at + i) > high) return {0, i, false};
    code_point = (code_point << 6) | (byte(at + i) & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return {code_point, length, true};
}

// C0, DEL, C1, and the marks that turn the direction of the text around them.
bool IsControl(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

struct Range {
  uint32_t first;
  uint32_t last;
};
constexpr Range kZeroWidth[] = {{0x0300, 0x036F}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064},
                                {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}};
constexpr Range kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},  {0x3400, 0x4DBF},
                           {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xAC00, 0xD7A3},  {0xF900, 0xFAFF},
                           {0xFE30, 0xFE4F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F},
                           {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

template <size_t N>
bool InRanges(const Range (&ranges)[N], uint32_t c) {
  for (const Range& range : ranges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

int WidthOf(uint32_t c) {
  if (c < 0x300) return 1;
  if (InRanges(kZeroWidth, c)) return 0;
  return InRanges(kWide, c) ? 2 : 1;
}

std::string Clean(std::string_view text, bool replace_controls) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Decoded c = Decode(text, at);
    if (!c.valid) {
      clean += kReplacement;
    } else if (replace_controls && IsControl(c.code_point)) {
      clean += '?';
    } else {
      clean += text.substr(at, c.length);
    }
    at += c.length;
  }
  return clean;
}

}  // namespace

std::string ValidUtf8(std::string_view text) { return Clean(text, false); }

std::string Printable(std::string_view text) { return Clean(text, true); }

int DisplayWidth(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("\x1b[")) {
      const size_t end = text.find('m', at);
      if (end == std::string_view::npos) break;
      at = end + 1;
      continue;
    }
    const Decoded c = Decode(text, at);
    width += c.valid ? WidthOf(c.code_point) : 1;
    at += c.length;
  }
  return width;
}

std::string Truncate(std::string_view text, int width, std::string_view ellipsis) {
  if (DisplayWidth(text) <= width) return std::string(text);
  const int room = width - DisplayWidth(ellipsis);
  if (room < 0) return {};
  int used = 0;
  size_t at = 0;
  while (at < text.size()) {
    const Decoded c = Decode(text, at);
    const int character = c.valid ? WidthOf(c.code_point) : 1;
    if (used + character > room) break;
    used += character;
    at += c.length;
  }
  return std::string(text.substr(0, at)) + std::string(ellipsis);
}

}  // namespace lockstep::report
