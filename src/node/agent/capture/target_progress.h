#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "node/agent/capture/file_observation.h"
#include "node/control/api/capture.h"

namespace lockstep::agent {

/// An instant on the two clocks that matter: Kineto compares starts with the wall clock; waiting is measured by the
/// monotonic one, since wall clocks are set.
struct Instant {
  int64_t wall_ns = 0;
  int64_t monotonic_ns = 0;
};

/// What one process was asked for, as far as its progress depends on it.
struct TargetPlan {
  control::CaptureWindow::Mode mode = control::CaptureWindow::Mode::kDuration;
  int64_t duration_ns = 0;
  int64_t warmup_ns = 0;
  std::optional<int64_t> start_unix_ns = {};         ///< Common start.
  std::optional<int64_t> deliver_from_unix_ns = {};  ///< Nothing is expected before.
  int32_t warmup_iterations = 0;
  int64_t timeout_ns = 0;     ///< Without any progress.
  bool at_steps = false;      ///< By lockstep's tracer, which begins where a step ends and reports its result.
  bool may_ask_again = true;  ///< Its unfinished file may be removed, and the request delivered again.
  std::optional<std::pair<int32_t, int32_t>> torch_release = {};  ///< (2, 13).
};

/// What the registry says of the process at a look.
struct PollFacts {
  bool registered = false;
  int64_t last_poll_unix_ns = 0;
  int64_t poll_period_ns = 5'000'000'000;
  bool busy = false;    ///< Its last poll came without the ACTIVITIES bit.
  bool silent = false;  ///< No poll for three periods.
  /// Of a tracer, of this request: why it waits, or why it came to nothing.
  std::string waits_for = {};
  std::string refusal = {};
};

/// The progress of one process through a capture, as seen from outside: its polls, its trace file, the clock. Kineto
/// reports nothing, drops requests silently, and does not show that one is pending. So each state has a deadline for
/// the next observation, and a reason that fits what was observed instead. No input or output of its own;
/// not thread-safe. docs/formats and the reference of Kineto's behaviour: a `.tmp` file appears when the request
/// becomes active, about a second before the warm-up; the final name is the only proof of a whole trace.
class TargetProgress {
 public:
  /// Queued, at `now`.
  TargetProgress(const TargetPlan& plan, const Instant& now);
  /// The state that an earlier daemon left; the time without progress starts again.
  TargetProgress(const TargetPlan& plan, const Instant& now, const control::CaptureTarget& left);

  // What happened; nothing changes in a final state.
  void Delivered(int64_t unix_ns, const Instant& now);
  void Observed(const FileObservation& file, const Instant& now);
  void Polled(const PollFacts& facts, const Instant& now);
  /// The process has ended; the file was looked at after that.
  void Ended(const control::ProcessEnd& end, const Instant& now);
  /// Time passes: call after Observed and Polled.
  void Tick(const Instant& now);
  /// Queued behind another request: this is not a lack of progress. Call after Tick.
  void WaitsFor(std::string reason, const Instant& now);
  /// Given up by the manager, with its reason.
  void Refuse(std::string reason, const Instant& now);
  void Cancel(std::string reason, const Instant& now);

  /// Queued for too long: withdraw the offer, and then call GiveUp; a withdrawal that fails means that it was delivered
  /// at this moment.
  bool WantsWithdrawal() const { return wants_withdrawal_; }
  void GiveUp(const Instant& now);

  /// Kineto dropped the request, or no daemon was there in time for its start, and it is queued once more: true once
  /// each time. The caller removes the rest of the unfinished file and then offers the request again.
  bool TakeAskAgain() { return std::exchange(ask_again_, false); }

  control::TargetState state() const { return state_; }
  const std::string& reason() const { return reason_; }
  /// Of a trace that came to nothing: there was no room for it.
  bool disk_was_full() const { return disk_was_full_; }
  bool final() const { return control::IsFinal(state_); }
  std::optional<int64_t> delivered_unix_ns() const { return delivered_unix_ns_; }
  std::optional<int64_t> begun_unix_ns() const { return begun_unix_ns_; }
  std::optional<int64_t> finished_unix_ns() const { return finished_unix_ns_; }
  std::optional<int64_t> missed_start_unix_ns() const { return missed_start_unix_ns_; }
  uint64_t trace_bytes() const { return trace_bytes_; }
  /// How long after its delivery a request without a start is to begin; 0: it has a start, or begins by steps, or its
  /// PyTorch is left to its own default.
  int64_t StartAfterDeliveryNs() const;
  /// When the window is over, as far as that can be told: by the clock, of a delivered duration trace.
  std::optional<int64_t> ExpectedEndUnixNs() const;

 private:
  using State = control::TargetState;
  struct Why {
    std::string reason;
    bool merely_dropped = false;  // By Kineto, that looked at a bad moment: the next time it may not.
    bool is_disk_full = false;
  };
  void Enter(State state, std::string reason, const Instant& now);
  void Progress(const Instant& now) { progress_monotonic_ns_ = now.monotonic_ns; }
  void Lost(Why why, const Instant& now);
  bool MissedStart();
  void AskAgain(const Instant& now);
  std::string MissedStartNote() const;
  void TickQueued(const Instant& now);
  void TickDelivered(const Instant& now);
  void TickAtSteps(const Instant& now);
  void TickBegun(const Instant& now);
  std::optional<int64_t> ExpectedStartUnixNs() const;
  bool HasOldDefaultStart() const;
  Why WhyNeverBegun() const;
  std::string WhyTooLate() const;
  Why WhyNotFinished() const;
  std::string Timeout() const;
  bool Quiet() const { return polls_known_ && (polls_.silent || !polls_.registered); }
  std::string SinceWhen() const;

  TargetPlan plan_;
  State state_ = State::kQueued;
  std::string reason_;
  std::optional<int64_t> restored_unix_ns_;  // From an earlier daemon.
  std::optional<int64_t> missed_start_unix_ns_;
  int try_count_ = 0;  // That nothing came of.
  bool ask_again_ = false;
  bool disk_was_full_ = false;
  bool wants_withdrawal_ = false;
  bool withdrawal_times_out_ = false;  // What GiveUp makes of it: timed out, or refused.
  std::string withdrawal_reason_;
  std::optional<int64_t> delivered_unix_ns_;
  std::optional<int64_t> begun_unix_ns_;
  std::optional<int64_t> finished_unix_ns_;
  uint64_t trace_bytes_ = 0;
  int64_t progress_monotonic_ns_ = 0;
  PollFacts polls_;
  bool polls_known_ = false;
  FileObservation file_;
  bool busy_seen_ = false;                   // Since its file was begun.
  bool busy_without_file_ = false;           // Its profiler was in use and our file was not there.
  std::optional<int64_t> awake_since_ns_;    // Monotonic: polls again after silence.
  std::optional<int64_t> unfinished_since_;  // Monotonic: free again, with the file still unfinished.
};

}  // namespace lockstep::agent
