#pragma once

#include <string>

#include "inside/launch/environment.h"

namespace lockstep::launch {

/// The scheduler's id of the job that this process is part of; "" = none says one.
std::string JobId(const Environment& environment);

}  // namespace lockstep::launch
