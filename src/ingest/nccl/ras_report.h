#pragma once

#include <string_view>

#include "base/result.h"
#include "model/evidence/nccl_state.h"

namespace lockstep::ingest {

/// Whether these first bytes of a file are an answer of RAS, of any kind that ReadRasReport reads.
bool LooksLikeRasReport(std::string_view head);

/// Reads an answer of NCCL's RAS as `ncclras` prints it or the port sends it: text, JSON (also several documents, as
/// of monitor mode), protocol lines before it or not. `source`, `collected_unix_ns` are the caller's, except that the
/// time a JSON answer gives (local time of its process, taken as UTC) is a first value of the latter.
/// Source of the format: docs/formats/nccl-ras.md. Errors: kCorruptData, kUnsupported (no answer of RAS),
/// kLimitExceeded (above 64 MiB).
Result<evidence::RasReport> ReadRasReport(std::string_view text);

}  // namespace lockstep::ingest
