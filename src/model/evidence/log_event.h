#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/evidence/stack.h"

namespace lockstep::evidence {

enum class LogEventKind : uint8_t {
  kException,           ///< A Python traceback's last line.
  kWatchdogTimeout,     ///< NCCL watchdog caught a collective's time-out.
  kWatchdogStatus,      ///< "failure detected by watchdog at work sequence id": last enqueued, last completed.
  kWatchdogStuck,       ///< The watchdog or the heartbeat itself is stuck; the GIL cannot be had.
  kDesyncReport,        ///< c10d's text report of lagging ranks.
  kPeerClosed,          ///< Connection closed by peer: the peer's process ended in an orderly way.
  kPeerReset,           ///< Connection reset by peer: it was killed, or crashed.
  kTransportTimeout,    ///< Gloo or sockets: timed out waiting for a peer.
  kSizeMismatch,        ///< Gloo's preamble check: received size does not match.
  kCollectiveMismatch,  ///< TORCH_DISTRIBUTED_DEBUG=DETAIL: fingerprints differ.
  kMonitoredBarrier,    ///< A rank failed to pass, or rank 0 is to be looked at.
  kStoreTimeout,        ///< c10d store: a key never came.
  kOutOfMemory,         ///< Of the device or of the host.
  kSignal,              ///< Killed by a signal, as the launcher or the shell says.
  kNcclError,           ///< A WARN of NCCL's, or an ncclResult that is not success.
  kDeviceError,         ///< Xid, ECC, CUDA error.
  kOtherError,          ///< A line of level error that no rule knows.
};

const char* LogEventKindName(LogEventKind kind);  ///< "exception", "watchdog_timeout", ...

/// A call that a line says some ranks made.
struct NamedCall {
  int32_t rank = 0;
  std::string operation;  ///< "all_reduce"; "" = not told.
  std::string shape;      ///< "4096" or "25, 3"; "" = none, or not told.
  std::string dtype;      ///< "Float"; "" = not told.
};

/// One line of a rank's log that tells of a failure.
struct LogEvent {
  LogEventKind kind = LogEventKind::kOtherError;
  std::optional<int64_t> time_unix_ns;  ///< Where the line has a time; its zone is taken as UTC unless it says.
  std::string file;                     ///< Of the log.
  uint64_t line = 0;                    ///< From 1.
  std::string text;                     ///< The line, at most 1 KiB.
  std::optional<int32_t> rank;          ///< The rank that wrote the line, if the line or the file's name contains it.
  std::vector<int32_t> blamed_ranks;    ///< Ranks that the line points to.
  std::vector<int32_t> waiting_ranks;   ///< Ranks that, as the line says, wait for others.
  std::vector<NamedCall>
      calls;          ///< Of kCollectiveMismatch: the writing rank's and the other's, as far as they can be read.
  std::string peer;   ///< Address or host that it points to, "" = none.
  std::string group;  ///< Process group's name or description, "" = not told.
  std::optional<int64_t> sequence;     ///< Collective's number in its group, counted from 1 as the recorder does.
  std::string operation;               ///< "all_reduce"; "" = not told.
  int32_t signal = 0;                  ///< For kSignal.
  std::optional<int32_t> exit_status;  ///< As a launcher says it.
  StackFrame frame;                    ///< Of a traceback: the user's innermost frame; line 0 = none.
};

}  // namespace lockstep::evidence
