#pragma once

#include <gelf.h>

#include <cstdint>

#include "node/inspect/remote_memory.h"

namespace lockstep::inspect {

/// What is added to the file's addresses where `range` of it is mapped; false: the file has no such part.
bool FindBias(Elf* elf, const MemoryRange& range, uint64_t* bias);

}  // namespace lockstep::inspect
