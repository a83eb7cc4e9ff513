#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/control/api/capture.h"
#include "node/control/client/fan_out.h"
#include "node/control/client/node_client.h"
#include "node/control/client/same_steps.h"
#include "node/control/client/start_plan.h"
#include "node/control/client/trace_window.h"

namespace lockstep::control {

/// When windows of a length of time begin.
enum class StartMode : uint8_t {
  kAuto,  ///< At one moment on all nodes when there are several processes, else kNow.
  kNow,   ///< As each process polls and has warmed up.
  kLead,  ///< At one moment, `lead_ns` from now.
};

/// A process of the job that is traced.
struct JobTarget {
  size_t node_idx = 0;  ///< Into JobCaptureResult::nodes.
  Process process;
  TargetState state = TargetState::kQueued;
  std::string reason;                        ///< Why there is no trace of it, or what it waits for.
  std::optional<int64_t> delivered_unix_ns;  ///< By the node's clock, as all that follow.
  std::optional<int64_t> finished_unix_ns;
  std::string trace_name;    ///< On the node.
  uint64_t trace_bytes = 0;  ///< As the process wrote it.
  std::optional<ProcessEnd> end;

  std::string file;         ///< Name in the folder; empty until the trace is there, whole.
  uint64_t file_bytes = 0;  ///< Compressed.
  TraceFacts facts;
  std::string fetch_error;  ///< The trace is whole on its node and could not be brought here.

  bool kept() const { return !file.empty(); }
};

struct JobNodeState {
  Endpoint endpoint;
  std::string host;     ///< As the node calls itself, or as it was asked for.
  std::string problem;  ///< Why it gave no answer: not reached, refused, stopped answering.
  std::optional<ClockDifference> clock;
  int64_t exchange_ns = 0;  ///< The slowest exchange with it.
  uint64_t process_count = 0;
  bool allows_unsafe_captures = false;
  std::string capture_id;
};

/// A moment of a capture, for a progress display.
struct JobProgress {
  enum class Phase : uint8_t { kAsking, kChosen, kStarted, kFollowing, kRepeating, kDone };
  Phase phase = Phase::kAsking;
  const std::vector<JobNodeState>& nodes;
  const std::vector<JobTarget>& targets;
  std::optional<int64_t> start_unix_ns = {};  ///< The common start, by the caller's clock.
  std::string message = {};                   ///< kRepeating: why.
};

struct JobCaptureRequest {
  std::vector<Endpoint> nodes;
  bool nodes_are_whole_job = false;  ///< Ranks that are on none of them are missing, not elsewhere.
  CaptureSelector selector;
  CaptureWindow window;  ///< Common start and moment of delivery are decided here.
  CaptureOptions options;
  StartMode start = StartMode::kAuto;
  int64_t lead_ns = 0;
  bool choose_roundup = true;  ///< window.roundup is where to begin, and may be raised.
  std::string folder;          ///< Exists.
  bool compress = true;
  bool allow_unsafe = false;             ///< CaptureSpec's.
  int64_t timeout_ns = 300'000'000'000;  ///< From the windows' expected end, for all traces to come.
  size_t parallel = kDefaultParallel;
  std::function<void(const JobProgress&)> on_progress = {};  ///< On the caller's thread, every 300 ms or so.
  const std::atomic<bool>* cancelled = nullptr;  ///< Set from outside: the captures are cancelled on all nodes.
  /// How nodes are reached; tests put their own here.
  std::function<Result<std::unique_ptr<NodeClient>>(const Endpoint&)> connect = NodeClient::Create;
};

struct JobCaptureResult {
  std::vector<JobNodeState> nodes;
  std::vector<JobTarget> targets;  ///< By rank, then node and pid.
  std::string group;
  std::string window_name;  ///< In the traces' names.
  int64_t asked_unix_ns = 0;
  int64_t finished_unix_ns = 0;
  std::optional<int32_t> world_size;
  std::vector<int32_t> missing_ranks;  ///< Of the job, and registered nowhere that was asked.
  std::string missing_reason;
  uint64_t other_user_count = 0;  ///< Processes that matched, were another user's, and were left out.
  LeadNeeds lead;
  std::optional<int64_t> start_unix_ns;    ///< Common start that was asked for, by the caller's clock.
  std::optional<int64_t> start_spread_ns;  ///< Between the first window's start and the last's, clocks corrected.
  int64_t clock_error_ns = 0;              ///< What start_spread_ns may be wrong by.
  std::optional<int64_t> fetch_spread_ns;  ///< Between the first process's fetch and the last's.
  int32_t roundup = 1;
  int32_t attempt_count = 1;
  StepAgreement steps;  ///< For iterations.
  bool cancelled = false;

  size_t kept_count() const;
  /// Part of the request is missing: a rank, a node, a trace; or the ranks' steps are not the same.
  bool partial() const;
};

/// Captures a job on all its nodes: asks what is registered, chooses, decides the start, starts, follows, brings the
/// traces to the folder under their names and removes them from the nodes. Blocks until then. Errors: kNotFound (no
/// node could be reached, or nothing matches: says what is registered and what to do); kFailedPrecondition (several
/// jobs match: says which); kInvalidArgument (a lead that would lose ranks, with the least that works);
/// kPermissionDenied; kIo for the folder. A part that fails is reported in the result.
Result<JobCaptureResult> CaptureJob(const JobCaptureRequest& request);

}  // namespace lockstep::control
