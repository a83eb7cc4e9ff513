#pragma once

#include <cstdint>

#include "analysis/hang/job_view.h"

namespace lockstep::hang {

/// Whether calls with these signatures match at one sequence number: nothing that has to be equal differs, as far as
/// both tell. A launch whose operations were not recorded matches anything. Not transitive, since what one of them
/// does not tell matches all.
bool Match(const JobView& view, uint32_t a, uint32_t b);

}  // namespace lockstep::hang
