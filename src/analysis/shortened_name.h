#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::analysis {

/// What a sentence has room for, in bytes.
inline constexpr size_t kMaxNameInSentence = 100;

/// A name of at most `max_length` bytes as it is; of a longer one so much, cut before a UTF-8 character, and "...".
inline std::string ShortenedName(std::string_view name, size_t max_length = kMaxNameInSentence) {
  if (name.size() <= max_length) return std::string(name);
  size_t cut = max_length;
  while (cut > 0 && (static_cast<unsigned char>(name[cut]) & 0xC0U) == 0x80U) --cut;
  return std::string(name.substr(0, cut)) + "...";
}

}  // namespace lockstep::analysis
