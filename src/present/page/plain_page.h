#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::page {

// Pages of one file without scripts, light and dark by the reader's choice: what they have in common.

/// Up to the end of the heading, within <main>. `style`: CSS of this page's own, after that of all; it has the colours
/// --ink, --faint, --paper, --line, --fill and --bad, and may set others. `title` and `heading` are HTML.
std::string OpenPlainPage(std::string_view title, std::string_view heading, std::string_view style);
inline constexpr const char* kClosePlainPage = "</main>\n</body></html>\n";

/// A table that scrolls sideways where it is too wide; `columns`: titles, and whether numbers are below them.
std::string OpenTable(std::string_view label, const std::vector<std::pair<const char*, bool>>& columns);
inline constexpr const char* kCloseTable = "</tbody></table></div>\n";

/// What a colour of a drawing stands for: an element of <ul class="key">; `style` is the class that has the colour.
std::string KeyItem(std::string_view style, std::string_view label);

/// `text` of a number's is HTML as it is; that of the other may be anything.
std::string NumberCell(std::string_view text);
std::string TextCell(std::string_view text);

}  // namespace lockstep::page
