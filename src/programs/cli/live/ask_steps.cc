#include "programs/cli/live/ask_steps.h"

#include "node/jobs/job_stages.h"

namespace lockstep::cli {

live_stages::AskSteps AskStepsOf(const jobs::Nodes& nodes, int64_t time_limit_ns) {
  return [nodes, time_limit_ns](const std::string& job_id, uint64_t last_steps) {
    jobs::Nodes of_job = nodes;
    of_job.job_id = job_id;
    return jobs::AskStages(of_job, last_steps, time_limit_ns);
  };
}

}  // namespace lockstep::cli
