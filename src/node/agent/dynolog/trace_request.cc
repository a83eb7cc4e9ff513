#include "node/agent/dynolog/trace_request.h"

#include <algorithm>

#include "node/agent/dynolog/request_match.h"
#include "node/agent/kineto/config_text.h"

namespace lockstep::agent {
namespace {

int32_t OwnPid(const control::Process& process) {
  return process.client_pids.empty() ? process.pid : process.client_pids.front();
}

}  // namespace

TraceReply StartTrace(const RpcRequest& request, const DynologOptions& options, const Caller& caller,
                      CaptureManager* captures, Registry* registry) {
  TraceReply reply;
  const std::vector<control::Process> matched = MatchRequest(request, registry->Processes(), caller);
  control::CaptureSpec spec;
  for (const control::Process& process : matched) {
    reply.matched.push_back(OwnPid(process));
    if (process.state == control::ProcessState::kRequested) {
      ++reply.busy_count;
    } else if (static_cast<int64_t>(spec.selector.process_ids.size()) < request.process_limit) {
      spec.selector.process_ids.push_back(process.id);
    }
  }
  if (spec.selector.process_ids.empty()) return reply;

  const Result<ForeignConfig> config = ReadConfigText(request.config);
  if (!config) {
    reply.error = config.error().message;
    return reply;
  }
  spec.window = config->window;
  spec.options = config->options;
  const bool is_named = !config->log_file.empty();
  if (is_named && !IsInFolders(config->log_file, options.output_folders)) {
    // Told, since the client has already said to its user that the trace will be there.
    reply.error = "the log file is not in a folder that this daemon allows; the trace is in the capture instead";
  }
  const Result<control::Capture> capture =
      is_named && reply.error.empty() ? captures->Start(spec, caller, ForeignOutput{.log_file = config->log_file})
                                      : captures->Start(spec, caller);
  if (!capture) {
    reply.error = capture.error().message;
    return reply;
  }
  reply.capture_id = capture->id;
  for (const control::CaptureTarget& target : capture->targets) {
    if (!control::IsFinal(target.state)) reply.triggered.push_back(OwnPid(target.process));
  }
  return reply;
}

}  // namespace lockstep::agent
