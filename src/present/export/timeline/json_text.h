#pragma once

#include <string>
#include <string_view>

namespace lockstep::timeline {

/// Appends `text` as a JSON string, quotes included: control characters, quotes and backslashes escaped, bytes that are
/// not UTF-8 replaced by U+FFFD.
void AppendQuoted(std::string_view text, std::string* out);

}  // namespace lockstep::timeline
