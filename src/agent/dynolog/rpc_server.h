#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/capture/capture_manager.h"
#include "base/result.h"

namespace lockstep::agent {

struct DynologOptions {
  std::string address = "::1";  ///< "127.0.0.1" and "::1" both for the loopback.
  uint16_t port = 1778;         ///< 0 = any free one.
  /// Folders that a request's ACTIVITIES_LOG_FILE may lie in; elsewhere the trace goes to the daemon's own folder.
  std::vector<std::string> output_folders = {"/tmp"};
  std::string version;
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
