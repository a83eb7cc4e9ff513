#pragma once

#include "base/nearest.h"

namespace lockstep::cli {

using lockstep::DidYouMean;
using lockstep::NearestName;

}  // namespace lockstep::cli
