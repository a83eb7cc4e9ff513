#pragma once

#include "base/communicator.h"
#include "base/result.h"

namespace lockstep::nccl_bench {

/// Whether a step went well on all processes, the same on all: the first error by process, with the numbers of all that
/// say so, and how many others failed otherwise. A process alone cannot leave what the others go on with. Collective.
Status Agree(Communicator* communicator, const Status& own);

}  // namespace lockstep::nccl_bench
