#include "present/report/utf8.h"

#include <cstddef>
#include <cstdint>

#include "base/utf8.h"

namespace lockstep::report {
namespace {

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

}  // namespace

std::string ValidUtf8(std::string_view text) { return lockstep::ValidUtf8(text); }

std::string Printable(std::string_view text) { return lockstep::Printable(text); }

int DisplayWidth(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("\x1b[")) {
      const size_t end = text.find('m', at);
      if (end == std::string_view::npos) break;
      at = end + 1;
      continue;
    }
    const Utf8Character c = ReadUtf8(text, at);
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
    const Utf8Character c = ReadUtf8(text, at);
    const int character = c.valid ? WidthOf(c.code_point) : 1;
    if (used + character > room) break;
    used += character;
    at += c.length;
  }
  return std::string(text.substr(0, at)) + std::string(ellipsis);
}

}  // namespace lockstep::report
