#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/run.h"
#include "programs/python/array.h"

namespace lockstep::python {

/// All names of a run as one kText array, by NameId: a copy, made once for a run. Bytes that are not UTF-8 become
/// U+FFFD.
std::shared_ptr<const Array> NameDictionary(const model::NameTable& names);

/// A track's events as they lie in the run: start_ns, duration_ns, name, category and, on runtime and device lanes,
/// correlation (0 = none). Nothing is copied; `owner` keeps the run alive. Cost: O(1).
Table EventTable(const model::Track& track, std::shared_ptr<const Array> names, std::shared_ptr<const void> owner);

/// The allocator's counters of a rank as they lie in the run: time_ns, change_bytes, allocated_bytes and reserved_bytes
/// (-1 where the file has none), device (-1 = CPU). Nothing is copied.
Table MemoryEventTable(const model::MemoryColumns& memory, std::shared_ptr<const void> owner);

}  // namespace lockstep::python
