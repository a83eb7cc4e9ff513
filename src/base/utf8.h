#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// One character of a text, or a part of it that is none.
struct Utf8Character {
  uint32_t code_point = 0;
  size_t length = 0;  ///< Bytes taken.
  bool valid = false;
};

/// Reads the character at `at`, which lies in the text; a bad sequence takes its maximal valid beginning, at least one
/// byte. Overlong forms, surrogates and code points beyond U+10FFFF count as bad.
Utf8Character ReadUtf8(std::string_view text, size_t at);

/// Of a surrogate and of what lies beyond U+10FFFF: U+FFFD.
void AppendUtf8(uint32_t code_point, std::string* text);

/// `text` with every byte that is not part of a valid UTF-8 sequence replaced by U+FFFD, one per maximal bad part.
std::string ValidUtf8(std::string_view text);

/// ValidUtf8, and control characters (C0, DEL, C1, bidirectional overrides) as '?': safe to send to a terminal, one
/// line.
std::string Printable(std::string_view text);

}  // namespace lockstep
