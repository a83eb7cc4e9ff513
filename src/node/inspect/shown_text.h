#pragma once

#include <string>
#include <string_view>

#include "base/utf8.h"

namespace lockstep::inspect {

/// A text of the process, such as a function's name, as it is shown: printable, of at most 1024 bytes.
inline std::string ShownText(std::string_view text) { return Printable(text.substr(0, 1024)); }

}  // namespace lockstep::inspect
