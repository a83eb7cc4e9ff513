#include "analysis/hang/rank_condition.h"

#include <signal.h>

#include <algorithm>

#include "analysis/hang/contains.h"

namespace lockstep::hang {
namespace {

using evidence::Liveness;
using evidence::LogEvent;
using evidence::LogEventKind;

/// An exception whose text tells of a lost or silent peer: the rank is its victim.
bool TellsOfPeer(const std::string& text) {
  return Contains(text, "Connection closed by peer") || Contains(text, "Connection reset by peer") ||
         Contains(text, "Broken pipe") || Contains(text, "Timed out waiting") || Contains(text, "Socket Timeout") ||
         Contains(text, "socketPollConnect") || Contains(text, "failed to pass monitoredBarrier") ||
         Contains(text, "successfully reached monitoredBarrier") || Contains(text, "DistBackendError") ||
         Contains(text, "wait timeout after") || Contains(text, "Application timeout caused pair closure") ||
         Contains(text, "NCCL communicator was aborted") || Contains(text, "Connection refused");
}

void ReadEvent(const LogEvent& event, RankCondition& condition) {
  const bool first = condition.first_error == nullptr;
  bool is_error = false;
  switch (event.kind) {
    case LogEventKind::kException:
      is_error = true;
      condition.raised = true;
      condition.peer_lost = condition.peer_lost || TellsOfPeer(event.text);
      condition.out_of_memory = condition.out_of_memory || Contains(event.text, "OutOfMemoryError") ||
                                Contains(event.text, "CUDA out of memory");
      condition.device_error = condition.device_error || Contains(event.text, "CUDA error");
      break;
    case LogEventKind::kPeerClosed:
      if (condition.peer_closed == nullptr) {
        condition.peer_closed = &event;
      }
      condition.peer_lost = true;
      is_error = true;
      break;
    case LogEventKind::kPeerReset:
      if (condition.peer_reset == nullptr) {
        condition.peer_reset = &event;
      }
      condition.peer_lost = true;
      is_error = true;
      break;
    case LogEventKind::kTransportTimeout:
    case LogEventKind::kWatchdogTimeout:
    case LogEventKind::kStoreTimeout:
      if (condition.timeout == nullptr) {
        condition.timeout = &event;
      }
      condition.peer_lost = true;
      is_error = true;
      break;
    case LogEventKind::kSizeMismatch:
      condition.size_complaint = true;
      condition.aborted = true;
      is_error = true;
      break;
    case LogEventKind::kOutOfMemory:
      condition.out_of_memory = true;
      is_error = true;
      break;
    case LogEventKind::kSignal:
      condition.signal = event.signal;
      condition.gone = true;
      is_error = true;
      break;
    case LogEventKind::kDeviceError:
      condition.device_error = true;
      is_error = true;
      break;
    case LogEventKind::kMonitoredBarrier:
    case LogEventKind::kCollectiveMismatch:  // Both sides end with it: ExplainReports tells them apart.
      condition.peer_lost = true;
      is_error = true;
      break;
    case LogEventKind::kWatchdogStatus:
    case LogEventKind::kWatchdogStuck:
    case LogEventKind::kDesyncReport:
    case LogEventKind::kNcclError:
    case LogEventKind::kOtherError: break;
  }
  if (is_error && first) {
    condition.first_error = &event;
    condition.first_error_ns = event.time_unix_ns;
  }
}

/// PyTorch's watchdog ends its own process by SIGABRT when a collective has timed out there.
void ReadOwnWatchdog(RankCondition& condition) {
  const bool timed_out = condition.timeout != nullptr && condition.timeout->kind == LogEventKind::kWatchdogTimeout;
  condition.aborted = condition.aborted || (condition.signal == SIGABRT && timed_out);
}

void ReadProcess(const evidence::RankEvidence& rank, RankCondition& condition) {
  if (rank.exit_signal != 0) {
    condition.signal = rank.exit_signal;
    condition.gone = true;
  }
  if (rank.exit_status) {
    condition.gone = true;
    condition.finished = *rank.exit_status == 0 && rank.exit_signal == 0;
  }
  condition.gone = condition.gone || rank.liveness == Liveness::kGone;
  if (!rank.process) {
    return;
  }
  condition.stopped = rank.process->state == 'T' || rank.process->state == 't';
  condition.disk_wait = rank.process->state == 'D';
  condition.zombie = rank.process->state == 'Z';
  condition.gone = condition.gone || rank.process->state == 'X';
}

/// A launcher ends all others with SIGTERM once one has failed, a person with Ctrl-C what is stuck already.
void ReadEndsByOthers(std::vector<RankCondition>& conditions) {
  const auto is_request = [](int32_t signal) { return signal == SIGTERM || signal == SIGINT || signal == SIGHUP; };
  const bool any_failed = std::any_of(conditions.begin(), conditions.end(), [&](const RankCondition& of) {
    return (of.signal != 0 && !is_request(of.signal)) || of.raised || of.peer_lost || of.out_of_memory;
  });
  for (RankCondition& condition : conditions) condition.ended_by_others = any_failed && is_request(condition.signal);
}

}  // namespace

std::vector<RankCondition> ReadConditions(const JobView& view) {
  std::vector<RankCondition> conditions(view.ranks.size());
  const bool nodes_missing =
      std::any_of(view.job->missing.begin(), view.job->missing.end(),
                  [](const evidence::MissingEvidence& missing) { return missing.what == "node"; });
  for (size_t i = 0; i < view.ranks.size(); ++i) {
    const evidence::RankEvidence* rank = view.ranks[i].evidence;
    RankCondition& condition = conditions[i];
    if (rank == nullptr) {
      condition.unreachable = nodes_missing;
      condition.absent = view.job->live && !nodes_missing;
      condition.gone = condition.absent;
      continue;
    }
    condition.main = ReadMainThread(rank->stacks);
    for (const LogEvent& event : rank->log) {
      if (event.rank && *event.rank != rank->rank) {
        if (event.kind == LogEventKind::kSignal && *event.rank >= 0 &&
            static_cast<size_t>(*event.rank) < conditions.size()) {
          ReadEvent(event, conditions[static_cast<size_t>(*event.rank)]);  // A launcher's word in another's log.
        }
        continue;
      }
      ReadEvent(event, condition);
    }
    ReadProcess(*rank, condition);
    ReadOwnWatchdog(condition);
    condition.raised = condition.raised || condition.main.place == MainThreadPlace::kRaised;
    condition.finished = condition.finished || (condition.main.place == MainThreadPlace::kExiting && !condition.raised);
    if (rank->liveness == Liveness::kRunning && rank->process && rank->process->state != 'Z' &&
        rank->exit_signal == 0 && condition.main.place != MainThreadPlace::kRaised &&
        condition.main.place != MainThreadPlace::kExiting && condition.main.place != MainThreadPlace::kUnknown) {
      condition.raised = false;  // It lives and its main thread works: whatever it raised, it caught.
    }
  }
  ReadEndsByOthers(conditions);
  return conditions;
}

}  // namespace lockstep::hang
