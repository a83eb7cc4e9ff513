#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/fabric.h"

namespace lockstep::ingest {

/// What `lockstep bench collectives --json` printed: of each operation and size the call with two buffers, or the one
/// that there is. Errors: kCorruptData (none of that, or nothing in it was measured by two ranks or more).
Result<model::Fabric> ParseBenchResults(std::string_view json, const std::string& source);

/// The same of a file, plain or compressed. Errors: those of OpenFile; kLimitExceeded above 64 MiB.
Result<model::Fabric> ReadBenchResults(const std::string& path);

}  // namespace lockstep::ingest
