#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node/agent/engines/engine_kind.h"

namespace lockstep::agent {

/// A server of an engine, by how it was started.
struct FoundEngine {
  EngineKind kind = EngineKind::kVllm;
  uint16_t port = 0;
  bool operator==(const FoundEngine&) const = default;
};

/// What a command is, its words separated by NULs as in /proc/PID/cmdline: `vllm serve`, `python -m
/// vllm.entrypoints.openai.api_server`, `python -m sglang.launch_server`, `sglang serve`, `tritonserver`, with --port
/// (Triton: --metrics-port) or the engine's own one. Nullopt: none of these.
std::optional<FoundEngine> EngineOfCommand(std::string_view command);

/// (port, uid) of sockets that listen on the loopback or on all addresses, from the text of /proc/net/tcp or tcp6.
std::set<std::pair<uint16_t, uint32_t>> LoopbackListeners(std::string_view text);

/// Servers in this network namespace, by port: processes of users that `allowed` admits, where a socket of the same
/// user does listen. `root`: "/proc".
std::vector<FoundEngine> FindEngines(const std::function<bool(uint32_t uid)>& allowed,
                                     const std::string& root = "/proc");

}  // namespace lockstep::agent
