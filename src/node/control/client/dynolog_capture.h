#pragma once

#include <vector>

#include "base/result.h"
#include "node/control/client/dynolog_client.h"
#include "node/control/client/job_capture.h"

namespace lockstep::control {

/// The same as CaptureJob, on nodes that run Dynolog. Dynolog gives only pids: `request.selector` may name a SLURM job
/// and pids (no ranks), ranks are not known, and the traces are waited for in `request.folder`, which the nodes must
/// share with the caller under the same name. A process whose trace does not come is timed out, with the path where it
/// may lie on its node. `request.nodes` is not used. Errors: kNotFound (no node answers, or no process matches),
/// kInvalidArgument, kIo.
Result<JobCaptureResult> CaptureThroughDynolog(const JobCaptureRequest& request, const std::vector<DynologNode>& nodes);

}  // namespace lockstep::control
