#pragma once

#include <string_view>

namespace lockstep::hang {

/// Whether `part` stands anywhere in the text; an empty one does.
inline bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace lockstep::hang
