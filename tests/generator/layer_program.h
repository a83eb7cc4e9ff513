#pragma once

#include <cstdint>
#include <vector>

#include "generator/job_log.h"

namespace lockstep::tracegen {

/// A kernel an operator launches.
struct KernelSpec {
  uint32_t name = 0;
  int64_t duration_ns = 0;
};

/// An operator: nested ranges from the outside in, view operators called first, then kernels.
struct OpSpec {
  std::vector<uint32_t> ranges;
  std::vector<uint32_t> views;
  std::vector<KernelSpec> kernels;
  bool differentiable = false;  ///< Has a partner in the backward pass, joined by a flow.
};

/// The operators of one transformer block and of the rest of a training step.
struct LayerProgram {
  std::vector<OpSpec> forward;
  std::vector<OpSpec> backward;  ///< `differentiable` ones in the reverse order of `forward`'s.
  OpSpec loss;
  OpSpec loss_backward;
  std::vector<OpSpec> optimizer;              ///< Per layer.
  int64_t KernelCount(int32_t layers) const;  ///< Compute kernels of the forward and backward pass of a step.
};

LayerProgram MakeLayerProgram(NamePool* names);

}  // namespace lockstep::tracegen
