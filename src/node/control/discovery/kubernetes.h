#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/control/discovery/hosts.h"

namespace lockstep::control {

/// The label selectors under which a job of the name may have its pods, by operator, the likeliest first.
std::vector<std::string> JobSelectors(const std::string& name);

/// The nodes of the pods in `kubectl get pods -o json` that run. A pod with a container "lockstepd" is a node by itself
/// (named as the pod, at its own address: the sidecar is in there); others are reached through their machine's daemon
/// (its name, at its address; each once). `job` is for messages. Without any pods:
/// no nodes and no state. Errors: see FindJob (kNotFound: there are pods, and none runs).
Result<JobNodes> SelectPods(const std::string& job, std::string_view json);

/// Errors: kInvalidArgument where `name` has another form than FindPods takes.
Status CheckPodsName(const std::string& name);

/// Asks kubectl. `name`: "[NAMESPACE/]NAME", or a label selector for NAME. Errors: see FindJob.
Result<JobNodes> FindPods(const std::string& name);

}  // namespace lockstep::control
