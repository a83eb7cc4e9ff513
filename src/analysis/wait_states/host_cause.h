#pragma once

#include <string_view>
#include <vector>

#include "analysis/wait_states/wait_states.h"
#include "base/ids.h"
#include "model/name_table.h"

namespace lockstep::analysis {

/// What a CPU range or runtime call says of why the device has nothing to do. Those below kHost's own reach over all
/// ranges inside them: a copy inside torch.save is part of the checkpoint.
enum class HostKind : uint8_t {
  kUnknown,            ///< Not looked at yet (HostKinds only).
  kWork,               ///< An ordinary operator, annotation, frame or call.
  kStep,               ///< "ProfilerStep#N": a window, not work.
  kSkipped,            ///< Ranges of CPU backends' collectives: they end on other threads and do not nest.
  kCollectiveCall,     ///< Issues or awaits a collective.
  kDataLoading,        ///< "dataloader" in any case.
  kGarbageCollection,  ///< gc.collect, its built-in frame, or a range called "gc" or "garbage collection".
  kAllocator,          ///< cudaMalloc, cudaFree, cudaHostAlloc, cuMemAlloc, hipMalloc, ...
  kCheckpoint,         ///< torch.save, torch/serialization.py, torch/distributed/checkpoint, save_checkpoint, ...
  kLaunch,             ///< Calls that launch kernels or graphs.
};
HostKind HostKindOf(std::string_view name);

/// HostKindOf by NameId, each name looked at once. Not thread-safe.
class HostKinds {
 public:
  explicit HostKinds(const model::NameTable& names) : names_(names), kinds_(names.size(), HostKind::kUnknown) {}
  HostKind operator[](NameId name) {
    HostKind& kind = kinds_[name.value];
    if (kind == HostKind::kUnknown) kind = HostKindOf(names_[name]);
    return kind;
  }

 private:
  const model::NameTable& names_;
  std::vector<HostKind> kinds_;
};

}  // namespace lockstep::analysis
