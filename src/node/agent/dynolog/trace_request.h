#pragma once

#include <string>

#include "node/agent/capture/capture_manager.h"
#include "node/agent/dynolog/rpc_message.h"
#include "node/agent/dynolog/rpc_server.h"

namespace lockstep::agent {

/// Answers setKinetOnDemandRequest: matches processes and starts one capture of those that are free.
TraceReply StartTrace(const RpcRequest& request, const DynologOptions& options, const Caller& caller,
                      CaptureManager* captures, Registry* registry);

}  // namespace lockstep::agent
