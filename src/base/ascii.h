#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

/// Classes and case of ASCII alone, whatever the locale; bytes of other characters are in no class.

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool IsAlphanumeric(char c) { return IsLetter(c) || IsDigit(c); }
/// Digits and nothing else, at least one.
constexpr bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}
/// The value of a hexadecimal digit in either case; -1 of anything else.
constexpr int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
/// The first `count` characters as a hexadecimal number, at most 8; nullopt where one is not a digit or is not there.
constexpr std::optional<uint32_t> HexNumber(std::string_view text, size_t count) {
  if (text.size() < count) return std::nullopt;
  uint32_t value = 0;
  for (const char c : text.substr(0, count)) {
    if (HexDigit(c) < 0) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(HexDigit(c));
  }
  return value;
}
/// What JSON calls white space.
constexpr bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
/// The letter in lower case; what is not a letter stays.
constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace lockstep
