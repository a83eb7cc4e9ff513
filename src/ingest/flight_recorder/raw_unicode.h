#pragma once

#include <string>
#include <string_view>

namespace lockstep::ingest {

/// UTF-8 of a text in Python's codec "raw-unicode-escape", as protocol 0 of pickle has it: Latin-1, but for a backslash
/// with 'u' and four hexadecimal digits, or 'U' and eight. One without its digits stands as it is. Source: Python's
/// documentation of `codecs`.
std::string FromRawUnicodeEscape(std::string_view text);

}  // namespace lockstep::ingest
