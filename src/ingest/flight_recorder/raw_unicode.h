#pragma once

#include <string>
#include <string_view>

namespace lockstep::ingest {

/// UTF-8 of a text in Python's codec "raw-unicode-escape", as protocol 0 of pickle has it: Latin-1, but for `\uXXXX`
/// and
/// `\UXXXXXXXX`. Such an escape without its digits stands as it is. Source: Python's documentation of `codecs`.
std::string FromRawUnicodeEscape(std::string_view text);

}  // namespace lockstep::ingest
