#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/run.h"

namespace lockstep::analysis {

enum class KernelKind : uint8_t { kCompute, kCommunication, kMemcpy, kMemset };
const char* KernelKindName(KernelKind kind);   ///< "compute", "communication", "memcpy", "memset".

/// True for names of communication kernels: nccl, rccl, hccl, oneCCL and a documented list of custom collectives
/// (docs/metrics.md#communication-kernels). Kernels that carry collective metadata are communication whatever their name.
bool IsCommunicationKernelName(std::string_view name);

/// True for CPU ranges that are a collective of a CPU backend: "gloo:all_reduce", "mpi:...", "ucc:...".
bool IsCpuCollectiveName(std::string_view name);

/// By NameId: is a kernel of this name communication? One entry per name of the run, so that passes test a bit, not a string.
std::vector<bool> ClassifyCommunication(const model::Run& run);

}  // namespace lockstep::analysis
