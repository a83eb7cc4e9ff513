#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

/// One request of Dynolog's RPC: JSON behind a 32-bit length. Source of names and defaults:
/// docs/formats/dynolog-rpc.md.
struct RpcRequest {
  enum class Function : uint8_t { kStatus, kVersion, kTrace, kPauseDcgm, kResumeDcgm };
  Function function = Function::kStatus;
  // kTrace
  std::string config = {};         ///< Kineto's KEY=VALUE lines.
  std::vector<int64_t> pids = {};  ///< Empty, or 0 alone: all.
  int64_t job_id = 0;
  int64_t process_limit = 1000;
  // kPauseDcgm
  int64_t duration_s = 0;
};

/// What becomes of a request's text.
struct RpcReading {
  std::optional<RpcRequest> request;
  /// Where there is no request: what to answer; empty: nothing, the connection is closed (no JSON, no known function).
  std::string refusal = {};
};
/// Never throws, whatever the text: a field of a wrong type is answered in words, as Dynolog does (where it survives
/// it).
RpcReading ReadRpcRequest(std::string_view json);

/// What a trace request did. Pids are the processes' own, as they see them.
struct TraceReply {
  std::vector<int32_t> matched;    ///< In the job, wanted, and the caller's to trace.
  std::vector<int32_t> triggered;  ///< Those that get the configuration.
  int32_t busy_count = 0;          ///< Those that still have another one to fetch.
  std::string capture_id = {};     ///< Ours; not in Dynolog's answer, which tools read leniently.
  std::string error = {};          ///< Ours: why nothing was triggered.
};

// One line each: scripts read "response = ..." line by line. Keys in alphabetical order, as Dynolog writes them.
std::string StatusReply();
std::string VersionReply(std::string_view version);
std::string TraceReplyText(const TraceReply& reply);
/// There is no DCGM here to pause: {"status":false}, as from a Dynolog without it.
std::string DcgmReply();

}  // namespace lockstep::agent
