#pragma once

#include <string_view>

#include "base/result.h"
#include "evidence/nccl_state.h"

namespace lockstep::ingest {

/// Reads an answer of NCCL's RAS, text or JSON. Errors: kCorruptData, kUnsupported.
Result<evidence::RasReport> ReadRasReport(std::string_view text);

}  // namespace lockstep::ingest
