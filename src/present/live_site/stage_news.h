#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "present/live_stages/stage_watch.h"

namespace lockstep::live_site {

/// The event "stages": docs/formats/live-page.md.
std::string StageNewsJson(const std::vector<live_stages::JobNews>& jobs, int64_t asked_unix_ns);

}  // namespace lockstep::live_site
