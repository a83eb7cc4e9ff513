#pragma once

#include <string>

#include "base/result.h"
#include "ingest/nccl_ring/ring_pulse.h"

namespace lockstep::ingest {

/// A ring of what matters of another, read through `read`: its communicators, its operations under way and the newest
/// `most_operations` of the rest; without sums. For a look at a process that is sent over a network. Of a ring of many
/// operations the newest 65536 are looked at. Errors: kCorruptData.
Result<std::string> CopyNewest(const ReadRingAt& read, size_t most_operations);

}  // namespace lockstep::ingest
