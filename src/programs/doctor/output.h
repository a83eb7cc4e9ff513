#pragma once

#include <cstddef>
#include <ostream>
#include <vector>

#include "programs/doctor/check.h"

namespace lockstep::doctor {

size_t CountOf(const std::vector<Check>& checks, CheckStatus status);
/// A line per check, its advice below it, and how many problems and warnings there are.
void WriteText(const std::vector<Check>& checks, std::ostream& out);
/// lockstep.doctor/1 (docs/json.md).
void WriteJson(const std::vector<Check>& checks, std::ostream& out);

}  // namespace lockstep::doctor
