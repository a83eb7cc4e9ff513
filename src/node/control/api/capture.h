#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node/control/api/process.h"

namespace lockstep::control {

/// What of a process's work is traced: a length of time, or a count of iterations.
struct CaptureWindow {
  enum class Mode : uint8_t { kDuration, kIterations };
  Mode mode = Mode::kDuration;

  // kDuration
  int64_t duration_ns = 500'000'000;  ///< 1 ms .. 1 h; whole milliseconds.
  std::optional<int64_t> start_unix_ns =
      {};  ///< Common start, by the wall clock, whole ms; unset: when each process polls.
  std::optional<int64_t> warmup_ns = {};  ///< Whole seconds; unset: 5 s where a device is traced, else 1 s.

  // kIterations
  int32_t iterations = 0;                       ///< 1 .. 100000.
  int32_t roundup = 1;                          ///< Begin at the next multiple of this.
  std::optional<int64_t> start_iteration = {};  ///< Or at this one; one in the past is rounded up by `roundup`.
  int32_t warmup_iterations = 0;

  /// Not handed to any process before this (wall clock): with the processes' poll phases known, one moment is chosen
  /// after which all of them poll close together.
  std::optional<int64_t> deliver_from_unix_ns = {};
};

struct CaptureOptions {
  bool record_shapes = false;
  bool memory = false;
  bool stacks = false;
  bool flops = false;
  bool modules = false;
  std::vector<std::string> activities = {};  ///< Kineto's names ("cpu_op"); empty: the process's own default.
};

/// Selects processes of a node. All that is set must hold; processes that the caller may not trace never match.
struct CaptureSelector {
  std::string job_id;                    ///< Empty: any.
  std::vector<int32_t> pids;             ///< Of the process or an ancestor of it (torchrun's selects its ranks).
  std::vector<std::string> process_ids;  ///< Process::id.
  std::vector<std::pair<int32_t, int32_t>> ranks;  ///< Inclusive ranges; empty: any, known or not.
  std::optional<uint32_t> uid;
  bool include_launchers = false;  ///< Launchers and helpers too.
};

struct CaptureSpec {
  std::string group;  ///< Ties the captures of several nodes: [A-Za-z0-9_-]{1,64}; empty: the capture's own id.
  CaptureSelector selector;
  CaptureWindow window;
  CaptureOptions options;
  int64_t wait_ns = 0;  ///< How long to wait for a first match (a restarted daemon's processes register within a poll).
  int64_t timeout_ns = 300'000'000'000;  ///< Without any progress of a process: it is given up.
  uint32_t process_limit = 0;            ///< 0: none.
  bool allow_unsafe = false;             ///< Also trace processes for which CaptureRisk() knows a risk.
};

/// The state of one process's capture. The first five lead to kDone; the others end it without a trace.
enum class TargetState : uint8_t {
  kQueued,     ///< Waits for the process's next poll.
  kDelivered,  ///< The process has fetched it, and waits for its start.
  kWarming,    ///< Its trace file was begun.
  kCollecting,
  kWriting,
  kDone,     ///< The file has its final name.
  kRefused,  ///< The process dropped it; `reason` says why, as far as can be told.
  kDied,     ///< The process ended.
  kTimedOut,
  kCancelled,
};
bool IsFinal(TargetState state);

struct CaptureTarget {
  Process process;  ///< As it was when the capture was made.
  TargetState state = TargetState::kQueued;
  std::string reason;  ///< For a reader: why it ended without a trace, or what it waits for.
  std::optional<int64_t> delivered_unix_ns;
  std::optional<int64_t> begun_unix_ns;  ///< Trace file seen.
  /// The common start that it missed because its node's daemon restarted about then: it is traced by itself.
  std::optional<int64_t> missed_start_unix_ns;
  std::optional<int64_t> finished_unix_ns;  ///< Final state reached.
  std::string trace_name;  ///< Last part of the download's URL; set when done. [A-Za-z0-9._-]+, ends in ".json".
  uint64_t trace_bytes = 0;
  /// Its process ended within the capture, or up to kWatchedAfterNs after this was final.
  std::optional<ProcessEnd> end;
};
/// A crash that a trace has caused may show a while after it.
inline constexpr int64_t kWatchedAfterNs = 60'000'000'000;

enum class CaptureState : uint8_t {
  kWaiting,  ///< No process matches yet; `wait_ns` is not over.
  kRunning,
  kDone,     ///< Every target is done.
  kPartial,  ///< Some are done.
  kFailed,   ///< None is.
  kCancelled,
};
bool IsFinal(CaptureState state);

struct Capture {
  std::string id;  ///< [a-z0-9]{16}; random.
  CaptureSpec spec;
  CaptureState state = CaptureState::kRunning;
  std::string reason;
  std::string requested_by;  ///< For a reader and the audit: user, certificate or token name, and address.
  int64_t created_unix_ns = 0;
  std::optional<int64_t> finished_unix_ns;
  std::vector<CaptureTarget> targets;  ///< By rank, then pid.
};

/// Of an inspection too: 16 of a-z and 0-9.
bool IsCaptureId(std::string_view id);
/// Which becomes a file's name at the other end.
bool IsTraceName(std::string_view name);

const char* TargetStateName(TargetState state);    ///< "queued", "delivered", "warming", ..., "timed_out", "cancelled".
const char* CaptureStateName(CaptureState state);  ///< "waiting", "running", "done", "partial", "failed", "cancelled".

}  // namespace lockstep::control
