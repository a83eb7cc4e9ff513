#pragma once

#include <algorithm>
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
/// What JSON calls white space.
constexpr bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
/// The letter in lower case; what is no letter stays.
constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace lockstep
