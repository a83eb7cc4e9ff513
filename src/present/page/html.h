#pragma once

#include <string>
#include <string_view>

namespace lockstep::page {

/// Any bytes as HTML text, fit for element content and for attribute values in quotes: valid UTF-8, control characters
/// and turns of direction as '?', and & < > " ' as entities.
std::string EscapeHtml(std::string_view text);

/// The same for text of several lines, which EscapeHtml would run together; each line ends with a line break.
std::string EscapeHtmlLines(std::string_view text);

}  // namespace lockstep::page
