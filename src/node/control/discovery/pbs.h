#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/control/discovery/hosts.h"

namespace lockstep::control {

/// Hosts of PBS's exec_host ("n001/1*2+n002/1*5"), each once, in order.
std::vector<std::string> ParseExecHost(std::string_view exec_host);

/// The job that the user means by `id` ("12", "12.server", "13[4].server") in `qstat -f -F json`, with its nodes.
/// Errors: see FindJob.
Result<JobNodes> SelectPbsJob(const std::string& id, std::string_view json);

/// Errors: kInvalidArgument where `id` has another form than a job's.
Status CheckPbsId(const std::string& id);

/// Asks qstat. Errors: see FindJob.
Result<JobNodes> FindPbsJob(const std::string& id);

}  // namespace lockstep::control
