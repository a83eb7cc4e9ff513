#pragma once

#include <string_view>

#include "model/evidence/nccl_state.h"

namespace lockstep::ingest {

/// Reads RAS's text report into `report`; false = it holds no part of one.
bool ReadRasText(std::string_view text, evidence::RasReport& report);

}  // namespace lockstep::ingest
