#pragma once

#include <string_view>

namespace lockstep::model {

/// True for names of communication kernels: nccl, rccl, hccl, oneCCL and a documented list of libraries
/// (docs/metrics.md#communication-kernels). Kernels that carry collective metadata are communication whatever their
/// name.
bool IsCommunicationKernelName(std::string_view name);

/// True for names that sound like a collective that an engine wrote itself ("multimem_all_reduce_kernel"). They count
/// as compute, as in the peers, until the user claims them (AnalysisOptions::communication_kernels).
bool LooksLikeCollectiveKernel(std::string_view name);

}  // namespace lockstep::model
