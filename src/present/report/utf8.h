#pragma once

#include <string>
#include <string_view>

namespace lockstep::report {

/// `text` with every byte that is not part of a valid UTF-8 sequence replaced by U+FFFD, one per maximal bad part.
/// Overlong forms, surrogates and code points beyond U+10FFFF count as bad. Names from files may hold anything.
std::string ValidUtf8(std::string_view text);

/// ValidUtf8, and control characters (C0, DEL, C1, bidirectional overrides) as '?': safe to send to a terminal, one
/// line.
std::string Printable(std::string_view text);

/// Terminal columns that valid UTF-8 text takes: 2 for wide East Asian characters and emoji, 0 for combining marks and
/// for our own colour sequences (ESC [ ... m), else 1.
int DisplayWidth(std::string_view text);

/// The longest beginning of valid UTF-8 text that fits into `width` columns, ending in `ellipsis` when something was
/// cut.
std::string Truncate(std::string_view text, int width, std::string_view ellipsis);

}  // namespace lockstep::report
