#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/agent/capture/capture_manager.h"

namespace lockstep::agent {

struct DynologOptions {
  std::vector<std::string> addresses = {"127.0.0.1", "::1"};  ///< At least one must be there.
  uint16_t port = 1778;                                       ///< 0 = any free one.
  /// Folders that a request's ACTIVITIES_LOG_FILE may lie in; elsewhere the trace goes to the daemon's own folder.
  std::vector<std::string> output_folders = {"/tmp"};
  /// The identity of a user of this machine; a remote caller has none, and may trace nothing.
  std::function<Caller(std::optional<uint32_t> uid, const std::string& address)> caller_of;
  std::string version;
  size_t request_bytes = 64 * 1024;  ///< Of one request; a longer one is not read.
  size_t connection_count = 64;      ///< Further ones are closed at once.
  int deadline_seconds = 5;          ///< For a whole request, and for its answer.
};

/// Dynolog's RPC, so that its `dyno` command and unitrace.py work against this daemon. docs/formats/dynolog-rpc.md.
class DynologServer {
 public:
  /// Listens, and serves on threads of its own until it is destroyed.
  static Result<std::unique_ptr<DynologServer>> Open(const DynologOptions& options, CaptureManager* captures,
                                                     Registry* registry);
  virtual ~DynologServer() = default;
  virtual uint16_t port() const = 0;
};

}  // namespace lockstep::agent
