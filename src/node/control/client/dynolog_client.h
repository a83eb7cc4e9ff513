#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/control/api/capture.h"

namespace lockstep::control {

/// A node that runs Dynolog, or lockstepd with its RPC.
struct DynologNode {
  std::string host;
  uint16_t port = 1778;
};

/// What Dynolog is asked to trace. It tells neither ranks nor progress: files are all there is to follow.
struct DynologRequest {
  int64_t job_id = 0;         ///< SLURM's, as a number; 0: processes under no SLURM job.
  std::vector<int32_t> pids;  ///< Empty: all of the job.
  CaptureWindow window;
  CaptureOptions options;
  std::string log_file;  ///< Absolute; ends in ".json"; each process inserts "_PID" before that.
  int32_t process_limit = 1000;
};

/// Dynolog's answer: pids as the processes see them.
struct DynologAnswer {
  std::vector<int32_t> matched;
  std::vector<int32_t> triggered;
  int32_t busy_count = 0;
};

/// Kineto's KEY=VALUE lines for a request, as Dynolog passes them on. Errors: kInvalidArgument: the log file has a
/// character that Kineto's configuration cannot hold.
Result<std::string> DynologConfigText(const DynologRequest& request);
/// "DIR/x.json" and 42: "DIR/x_42.json".
std::string DynologTracePath(std::string_view log_file, int32_t pid);

/// One request to one node. Errors: kNotFound (no process listens), kCancelled (deadline), kIo, kCorruptData (an answer
/// that is none), kUnsupported (closed without an answer).
Result<DynologAnswer> AskDynolog(const DynologNode& node, const DynologRequest& request, int64_t deadline_ns);

}  // namespace lockstep::control
