#include "base/cell.h"

#include <fmt/format.h>

namespace lockstep {

std::string IntegerList::Text() const { return fmt::format("[{}]", fmt::join(values, ",")); }

}  // namespace lockstep
