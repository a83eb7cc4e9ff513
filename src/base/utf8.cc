#include "base/utf8.h"

namespace lockstep {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// C0, DEL, C1, and the marks that turn the direction of the text around them.
bool IsControl(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

std::string Clean(std::string_view text, bool replace_controls) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Character c = ReadUtf8(text, at);
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

Utf8Character ReadUtf8(std::string_view text, size_t at) {
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

void AppendUtf8(uint32_t code_point, std::string* text) {
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) {
    *text += kReplacement;
    return;
  }
  const auto byte = [text](uint32_t value) { text->push_back(static_cast<char>(value)); };
  if (code_point < 0x80) return byte(code_point);
  if (code_point < 0x800) {
    byte(0xC0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      byte(0xE0 | code_point >> 12);
    } else {
      byte(0xF0 | code_point >> 18);
      byte(0x80 | (code_point >> 12 & 0x3F));
    }
    byte(0x80 | (code_point >> 6 & 0x3F));
  }
  byte(0x80 | (code_point & 0x3F));
}

std::string ValidUtf8(std::string_view text) { return Clean(text, false); }

std::string Printable(std::string_view text) { return Clean(text, true); }

}  // namespace lockstep
