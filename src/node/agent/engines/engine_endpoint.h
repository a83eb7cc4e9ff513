#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/agent/engines/engine_kind.h"

namespace lockstep::agent {

/// Where an engine's metrics are, and what they are to be called.
struct EngineEndpoint {
  std::string url;  ///< "http://127.0.0.1:8000/metrics"
  EngineKind kind = EngineKind::kVllm;
  std::string job = {};    ///< Label job_id; no two endpoints have the same.
  std::string model = {};  ///< Instead of what an engine with one model calls it; empty: as that does.
  std::string token_file = {};
  std::string token = {};  ///< What is in it.
  bool operator==(const EngineEndpoint&) const = default;
};

/// What a URL says.
struct EngineUrl {
  std::string url;   ///< With /metrics where it had no path.
  std::string host;  ///< Without brackets.
  uint16_t port = 0;
  bool is_encrypted = false;
  bool is_loopback() const;
};
/// http or https, a host, no user and password in it. Errors: kInvalidArgument.
Result<EngineUrl> ParseEngineUrl(const std::string& text);

/// The label job_id of an endpoint that has none in the settings: its host ("this node" by its name) and port.
std::string DefaultEngineJob(const EngineUrl& url, const std::string& this_host);

}  // namespace lockstep::agent
