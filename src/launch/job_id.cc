#include "launch/job_id.h"

namespace lockstep::launch {

std::string JobId(const Environment& environment) {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"}) {
    if (!environment.Get(name).empty()) return std::string(environment.Get(name));
  }
  return {};
}

}  // namespace lockstep::launch
