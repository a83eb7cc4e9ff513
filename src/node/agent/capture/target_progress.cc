#include "node/agent/capture/target_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nanoseconds.h"
#include "node/agent/capture/trace_name.h"

namespace lockstep::agent {
namespace {

using Mode = control::CaptureWindow::Mode;

// Kineto looks once a second whether to begin; first use of a device's tracing takes seconds more on a busy node.
constexpr int64_t kBeginGraceNs = 15 * kSecondNs;
// Between the poll that shows a free profiler and the renamed file.
constexpr int64_t kRenameGraceNs = 5 * kSecondNs;
// A request without a start begins this long after its receipt, and its warm-up; before PyTorch 2.1, 10 s. Kineto's own
// 2 s are whole turns of its loop, which looks once a second and was often begun together with the polls: whether it
// finds the start too far off at one turn and too near at the next is then a matter of microseconds, and the request
// is dropped. Half a second more lies between the turns.
constexpr int64_t kDefaultStartNs = 2'500'000'000;
constexpr int64_t kOldDefaultStartNs = 10 * kSecondNs;
// So often a process is asked that drops what it was asked: on overloaded processors one in a hundred looks too late.
constexpr int kMaxTries = 3;

std::string ShownSeconds(int64_t ns) {
  const double seconds = static_cast<double>(ns) / 1e9;
  return seconds < 10 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

}  // namespace

TargetProgress::TargetProgress(const TargetPlan& plan, const Instant& now) : plan_(plan) {
  progress_monotonic_ns_ = now.monotonic_ns;
  reason_ = "waits for its next poll";
}

TargetProgress::TargetProgress(const TargetPlan& plan, const Instant& now, const control::CaptureTarget& left)
    : plan_(plan),
      state_(left.state),
      reason_(left.reason),
      restored_unix_ns_(now.wall_ns),
      missed_start_unix_ns_(left.missed_start_unix_ns),
      delivered_unix_ns_(left.delivered_unix_ns),
      begun_unix_ns_(left.begun_unix_ns),
      finished_unix_ns_(left.finished_unix_ns),
      trace_bytes_(left.trace_bytes) {
  if (missed_start_unix_ns_) plan_.start_unix_ns.reset();
  progress_monotonic_ns_ = now.monotonic_ns;
  awake_since_ns_ = now.monotonic_ns;  // What happened meanwhile is not known: give it time to show.
}

void TargetProgress::Enter(State state, std::string reason, const Instant& now) {
  if (final()) return;
  if (state_ != state) Progress(now);
  state_ = state;
  reason_ = std::move(reason);
  if (state != State::kQueued) wants_withdrawal_ = false;
  if (final()) finished_unix_ns_ = now.wall_ns;
}

void TargetProgress::Delivered(int64_t unix_ns, const Instant& now) {
  if (final() || delivered_unix_ns_) return;
  delivered_unix_ns_ = unix_ns;
  if (state_ != State::kQueued) return;
  const auto start = ExpectedStartUnixNs();
  Enter(State::kDelivered,
        start ? fmt::format("starts at {}", ClockUtc(*start)) : "waits for the step at which it begins", now);
}

std::optional<int64_t> TargetProgress::ExpectedStartUnixNs() const {
  if (plan_.mode != Mode::kDuration) return std::nullopt;
  if (plan_.start_unix_ns) return plan_.start_unix_ns;
  if (!delivered_unix_ns_ || plan_.at_steps) return std::nullopt;
  return *delivered_unix_ns_ + plan_.warmup_ns + (HasOldDefaultStart() ? kOldDefaultStartNs : kDefaultStartNs);
}

bool TargetProgress::HasOldDefaultStart() const {
  return plan_.torch_release && *plan_.torch_release < std::pair(2, 1);
}

int64_t TargetProgress::StartAfterDeliveryNs() const {
  if (plan_.mode != Mode::kDuration || plan_.start_unix_ns || plan_.at_steps || HasOldDefaultStart()) return 0;
  return plan_.warmup_ns + kDefaultStartNs;
}

std::optional<int64_t> TargetProgress::ExpectedEndUnixNs() const {
  const auto start = ExpectedStartUnixNs();
  return start ? std::optional(*start + plan_.duration_ns) : std::nullopt;
}

void TargetProgress::Observed(const FileObservation& file, const Instant& now) {
  if (final()) return;
  const uint64_t size_before = file_.size_bytes;
  const auto kind_before = file_.kind;
  file_ = file;
  switch (file.kind) {
    case FileObservation::Kind::kFinished:
      if (!begun_unix_ns_) begun_unix_ns_ = now.wall_ns;
      if (!delivered_unix_ns_) delivered_unix_ns_ = now.wall_ns;  // The event was lost with an earlier daemon.
      trace_bytes_ = file.size_bytes;
      Enter(State::kDone, MissedStartNote(), now);
      return;
    case FileObservation::Kind::kUnusable:
      Enter(State::kRefused,
            "the file with the trace's name is not a regular file of the process's user with one link: someone removed "
            "or replaced it; it was left alone",
            now);
      return;
    case FileObservation::Kind::kUnfinished:
      if (!begun_unix_ns_) {
        begun_unix_ns_ = now.wall_ns;
        if (!delivered_unix_ns_) delivered_unix_ns_ = now.wall_ns;
        const bool warms = plan_.mode == Mode::kDuration || plan_.warmup_iterations > 0;
        Enter(warms ? State::kWarming : State::kCollecting, "", now);
      }
      if (kind_before != file.kind || size_before != file.size_bytes) {
        Progress(now);
        unfinished_since_.reset();
      }
      return;
    case FileObservation::Kind::kNone:
    case FileObservation::Kind::kNoFolder: return;
  }
}

void TargetProgress::Polled(const PollFacts& facts, const Instant& now) {
  if (final()) return;
  if (polls_known_ && polls_.silent && !facts.silent) awake_since_ns_ = now.monotonic_ns;
  if (!polls_.registered && facts.registered && polls_known_) awake_since_ns_ = now.monotonic_ns;
  polls_ = facts;
  polls_known_ = true;
  busy_seen_ = busy_seen_ || (facts.busy && begun_unix_ns_);
  if (facts.busy && delivered_unix_ns_ && !begun_unix_ns_ && file_.kind == FileObservation::Kind::kNone) {
    busy_without_file_ = true;
  }
}

void TargetProgress::Ended(const control::ProcessEnd& end, const Instant& now) {
  if (final()) return;
  std::string when = "while it was traced";
  if (state_ == State::kQueued) when = "before it fetched the request";
  if (state_ == State::kDelivered) when = "before its trace began";
  if (state_ == State::kWarming) when = "while it warmed up";
  if (state_ == State::kWriting) when = fmt::format("while it wrote its trace ({} bytes of it)", file_.size_bytes);
  const bool is_known = end.signal || end.exit_status;
  Enter(State::kDied,
        fmt::format("the process {}{} {}", EndWords(end), is_known ? " at " + ClockUtc(end.unix_ns) : "", when), now);
}

// Nothing comes of it any more. Asked again, a process begins at a time of its own: that is what was wanted where no
// common start was asked for.
void TargetProgress::Lost(Why why, const Instant& now) {
  if (why.merely_dropped && MissedStart()) return AskAgain(now);
  ++try_count_;
  const bool own_start = plan_.mode == Mode::kDuration && !plan_.start_unix_ns;
  if (!why.merely_dropped || !own_start || !plan_.may_ask_again || try_count_ >= kMaxTries) {
    if (try_count_ > 1) why.reason += fmt::format(" (it was asked {} times)", try_count_);
    disk_was_full_ = why.is_disk_full;
    Enter(State::kRefused, std::move(why.reason), now);
    return;
  }
  AskAgain(now);
}

// A common start that is missed ends a rank's part: its trace would not show what the others' show. Where the daemon
// was away shortly before it, all ranks of the node have missed it together.
bool TargetProgress::MissedStart() {
  if (!plan_.start_unix_ns || !restored_unix_ns_ || !plan_.may_ask_again) return false;
  if (*plan_.start_unix_ns - plan_.warmup_ns > *restored_unix_ns_ + kBeginGraceNs) return false;
  missed_start_unix_ns_ = std::exchange(plan_.start_unix_ns, std::nullopt);
  return true;
}

std::string TargetProgress::MissedStartNote() const {
  if (!missed_start_unix_ns_) return "";
  return fmt::format("missed the common start at {}, because its daemon was restarted about then: traced by itself",
                     ClockUtc(*missed_start_unix_ns_));
}

void TargetProgress::AskAgain(const Instant& now) {
  delivered_unix_ns_.reset();
  begun_unix_ns_.reset();
  unfinished_since_.reset();
  busy_seen_ = busy_without_file_ = false;
  file_ = {};
  ask_again_ = true;
  Enter(State::kQueued, "", now);
}

void TargetProgress::Refuse(std::string reason, const Instant& now) { Enter(State::kRefused, std::move(reason), now); }

void TargetProgress::Cancel(std::string reason, const Instant& now) {
  Enter(State::kCancelled, std::move(reason), now);
}

void TargetProgress::WaitsFor(std::string reason, const Instant& now) {
  if (state_ != State::kQueued || wants_withdrawal_) return;
  reason_ = std::move(reason);
  Progress(now);
}

std::string TargetProgress::SinceWhen() const {
  return polls_.last_poll_unix_ns == 0 ? "has not registered since the daemon started"
                                       : "has not polled since " + ClockUtc(polls_.last_poll_unix_ns);
}

void TargetProgress::GiveUp(const Instant& now) {
  if (!wants_withdrawal_ || state_ != State::kQueued) return;
  Enter(withdrawal_times_out_ ? State::kTimedOut : State::kRefused, withdrawal_reason_, now);
}

std::string TargetProgress::Timeout() const { return ShownSeconds(plan_.timeout_ns); }

void TargetProgress::Tick(const Instant& now) {
  switch (state_) {
    case State::kQueued: TickQueued(now); break;
    case State::kDelivered: plan_.at_steps ? TickAtSteps(now) : TickDelivered(now); break;
    case State::kWarming:
    case State::kCollecting:
    case State::kWriting: plan_.at_steps ? TickAtSteps(now) : TickBegun(now); break;
    default: break;
  }
}

void TargetProgress::TickQueued(const Instant& now) {
  std::string waits = "waits for its next poll";
  if (plan_.deliver_from_unix_ns && now.wall_ns < *plan_.deliver_from_unix_ns) {
    waits = fmt::format("is handed over at {}", ClockUtc(*plan_.deliver_from_unix_ns));
  } else if (Quiet()) {
    waits = SinceWhen();
  } else if (polls_.busy) {
    waits = "waits until its profiler is free: it is in use, by the job's own torch.profiler or an earlier request";
  }
  if (try_count_ > 0) waits += fmt::format("; it dropped the request {} before", try_count_ == 1 ? "once" : "twice");
  if (missed_start_unix_ns_)
    waits += fmt::format("; it missed the common start at {}", ClockUtc(*missed_start_unix_ns_));
  reason_ = waits;
  const int64_t needed_ns = plan_.at_steps ? 0 : plan_.warmup_ns + kSecondNs;
  if (plan_.start_unix_ns && now.wall_ns + needed_ns > *plan_.start_unix_ns) {
    // If it were handed over now, Kineto would silently drop it, and a tracer would begin later than the others.
    if (MissedStart()) return AskAgain(now);
    wants_withdrawal_ = true;
    withdrawal_times_out_ = false;
    withdrawal_reason_ =
        polls_.busy
            ? "its profiler was in use until the common start, by the job's own torch.profiler or an earlier request"
        : Quiet() ? fmt::format("{}: it missed the common start; stopped, hung, or in another network namespace now",
                                SinceWhen())
                  : fmt::format("did not poll in time for the common start at {}; give the start a longer lead",
                                ClockUtc(*plan_.start_unix_ns));
    return;
  }
  const int64_t not_before = plan_.deliver_from_unix_ns.value_or(0);
  if (now.wall_ns < not_before) {
    Progress(now);
    return;
  }
  if (now.monotonic_ns - progress_monotonic_ns_ < plan_.timeout_ns) return;
  wants_withdrawal_ = true;
  withdrawal_times_out_ = true;
  withdrawal_reason_ =
      polls_.busy ? fmt::format("its profiler was in use for {}, by the job's own torch.profiler or an earlier request",
                                Timeout())
                  : fmt::format(
                        "did not fetch the request for {}: it {}; it is stopped, hangs, or was restarted without "
                        "KINETO_USE_DAEMON=1",
                        Timeout(), SinceWhen());
}

// Kineto wants the warm-up and up to two of its ticks before the start.
std::string TargetProgress::WhyTooLate() const {
  if (!plan_.start_unix_ns || !delivered_unix_ns_) return "";
  const int64_t lead = *plan_.start_unix_ns - *delivered_unix_ns_;
  if (lead >= plan_.warmup_ns + 2 * kSecondNs) return "";
  return fmt::format(
      "dropped the request: it fetched it {} before the common start, and Kineto needs the warm-up of {} and 2 s; give "
      "the start a longer lead",
      ShownSeconds(std::max<int64_t>(0, lead)), ShownSeconds(plan_.warmup_ns));
}

TargetProgress::Why TargetProgress::WhyNeverBegun() const {
  if (file_.kind == FileObservation::Kind::kNoFolder) {
    return {"the folder for its trace was removed by someone, or by a cleaner of /tmp"};
  }
  if (plan_.mode == Mode::kIterations) {
    std::string why = fmt::format(
        "fetched the request, and no iteration began it for {}: no optimizer step was counted (an inference job, one "
        "that hangs, KINETO_USE_DAEMON empty so that PyTorch installs no optimizer hook, or the iteration asked for is "
        "far off)",
        Timeout());
    if (!plan_.torch_release || *plan_.torch_release < std::pair(2, 10)) {
      why += "; PyTorch before 2.10 also drops a request that comes before the first step";
    }
    if (busy_without_file_) why += "; its own torch.profiler was active meanwhile";
    return {std::move(why)};
  }
  if (busy_without_file_) {
    return {
        "dropped the request: its profiler was in use and wrote nothing here, so its own torch.profiler was active, "
        "which excludes a trace from outside (or the process could not write to the folder that it was given)"};
  }
  if (std::string why = WhyTooLate(); !why.empty()) return {.reason = std::move(why), .merely_dropped = true};
  return {.reason =
              "dropped the request without a message: it began no trace at the requested time; another request may "
              "have been pending in it (from another daemon, or from before a restart), its clock may be wrong, or it "
              "cannot write to the folder (a different container, a full disk)",
          .merely_dropped = true};
}

/// What is not over by then is waited for: a step may take minutes.
void TargetProgress::TickAtSteps(const Instant& now) {
  if (!polls_.refusal.empty()) {
    Enter(State::kRefused, polls_.refusal, now);
    return;
  }
  const bool is_free = polls_known_ && polls_.registered && !polls_.busy && !polls_.silent &&
                       polls_.last_poll_unix_ns > begun_unix_ns_.value_or(delivered_unix_ns_.value_or(0));
  if (!is_free) {
    unfinished_since_.reset();
  } else if (!unfinished_since_) {
    unfinished_since_ = now.monotonic_ns;
  } else if (now.monotonic_ns - *unfinished_since_ >= kRenameGraceNs) {
    Enter(State::kRefused, "finished with the request, and there is no trace: the folder for it may have been removed",
          now);
    return;
  }
  reason_ = Quiet() ? SinceWhen() + ": it writes its trace, or has stopped or hangs" : polls_.waits_for;
  if (state_ == State::kDelivered && reason_.empty()) reason_ = "waits for the step at which it begins";
  // Neither the time until the start nor the window itself is lack of progress.
  const int64_t began_ns = std::max(begun_unix_ns_.value_or(0), plan_.start_unix_ns.value_or(0));
  if (plan_.start_unix_ns && now.wall_ns < *plan_.start_unix_ns) Progress(now);
  if (begun_unix_ns_ && now.wall_ns < began_ns + plan_.duration_ns) Progress(now);
  if (state_ == State::kWarming && begun_unix_ns_ && now.wall_ns >= began_ns + plan_.warmup_ns)
    Enter(State::kCollecting, "", now);
  if (now.monotonic_ns - progress_monotonic_ns_ < plan_.timeout_ns) return;
  Enter(State::kTimedOut,
        state_ == State::kDelivered
            ? fmt::format("has the request, and no step ended to begin with for {}: it hangs, or its steps take longer "
                          "(raise --timeout)",
                          Timeout())
            : fmt::format("began its trace, and no step ended to end with for {}: it hangs, or its steps take longer "
                          "(raise --timeout)",
                          Timeout()),
        now);
}

void TargetProgress::TickDelivered(const Instant& now) {
  const int64_t waited = now.monotonic_ns - progress_monotonic_ns_;
  const auto start = ExpectedStartUnixNs();
  if (!start) {
    if (plan_.mode == Mode::kIterations && polls_known_) {
      reason_ =
          Quiet() ? SinceWhen() + ", and no iteration has begun it" : "waits for the iteration at which it begins";
    }
    if (waited >= plan_.timeout_ns) Enter(State::kTimedOut, WhyNeverBegun().reason, now);
    return;
  }
  const int64_t begins = std::max(*start - plan_.warmup_ns, delivered_unix_ns_.value_or(0));
  if (Quiet()) {  // Stopped processes keep no times.
    reason_ = SinceWhen() + ": stopped or hung";
    if (now.wall_ns > begins && waited >= plan_.timeout_ns) {
      Enter(State::kTimedOut, "fetched the request and then stopped: it " + reason_, now);
    }
    return;
  }
  int64_t deadline = begins + kBeginGraceNs;
  // Some profiler runs: ours, with the file out of our sight, or its own. It is over by then.
  if (polls_known_ && polls_.busy) deadline = std::max(deadline, *start + plan_.duration_ns + kBeginGraceNs);
  if (now.wall_ns < deadline) return;
  if (awake_since_ns_ && now.monotonic_ns - *awake_since_ns_ < kBeginGraceNs) return;
  Lost(WhyNeverBegun(), now);
}

TargetProgress::Why TargetProgress::WhyNotFinished() const {
  if (file_.kind == FileObservation::Kind::kNoFolder) {
    return {"began its trace, and the folder was removed by someone, or by a cleaner of /tmp"};
  }
  if (file_.kind == FileObservation::Kind::kNone) {
    return {
        "began its trace, and its file no longer exists: another trace of the process replaced it, or someone removed "
        "it"};
  }
  constexpr uint64_t kHardlyAny = uint64_t{1} << 20;
  if (file_.free_bytes && *file_.free_bytes < kHardlyAny) {
    return {.reason = fmt::format("began its trace and could not write it: the disk is full ({} bytes free); make room "
                                  "and repeat",
                                  *file_.free_bytes),
            .is_disk_full = true};
  }
  if (file_.size_bytes > 0) {
    return {
        fmt::format("began its trace and stopped writing it after {} bytes: the disk was full, or its limit on file "
                    "sizes was reached",
                    file_.size_bytes)};
  }
  // PyTorch 2.13 makes the file before it looks whether the start can be met.
  if (!busy_seen_) {
    if (std::string why = WhyTooLate(); !why.empty()) return {.reason = std::move(why), .merely_dropped = true};
    if (plan_.mode == Mode::kDuration) {
      return {.reason =
                  "made its trace's file and never reported that it traces: it checked too late whether to begin "
                  "(Kineto checks once a second, and drops a request that it can no longer warm up for; are its "
                  "processors overloaded?), or the job's own torch.profiler was active; repeat the capture",
              .merely_dropped = true};
    }
  }
  return {
      "began its trace and cancelled it: its own torch.profiler started, or the device's trace buffer overflowed "
      "while warming up"};
}

void TargetProgress::TickBegun(const Instant& now) {
  const auto start = ExpectedStartUnixNs();
  const auto end = ExpectedEndUnixNs();
  if (end && now.wall_ns >= *end) {
    if (state_ != State::kWriting) Enter(State::kWriting, "", now);
  } else if (start && now.wall_ns >= *start) {
    if (state_ == State::kWarming) Enter(State::kCollecting, "", now);
  } else if (plan_.mode == Mode::kIterations && file_.size_bytes > 0 && state_ != State::kWriting) {
    Enter(State::kWriting, "", now);
  }
  if (end && now.wall_ns < *end) Progress(now);  // The window itself is no lack of progress.

  // A poll that shows a free profiler, after the file was begun: nothing is coming any more.
  const bool free_again = polls_known_ && polls_.registered && !polls_.busy && !polls_.silent && begun_unix_ns_ &&
                          polls_.last_poll_unix_ns > *begun_unix_ns_ + 2 * kSecondNs;
  if (!free_again) {
    unfinished_since_.reset();
  } else if (!unfinished_since_) {
    unfinished_since_ = now.monotonic_ns;
  } else if (now.monotonic_ns - *unfinished_since_ >= kRenameGraceNs) {
    Lost(WhyNotFinished(), now);
    return;
  }
  const bool silent = Quiet();
  reason_ = silent ? SinceWhen() + ": stopped or hung" : "";
  if (now.monotonic_ns - progress_monotonic_ns_ < plan_.timeout_ns) return;
  if (silent) {
    Enter(State::kTimedOut, "began its trace and then stopped: it " + reason_, now);
  } else if (state_ == State::kWriting) {
    Enter(State::kTimedOut,
          fmt::format("its trace did not grow for {}: {} bytes were written", Timeout(), file_.size_bytes), now);
  } else {
    Enter(State::kTimedOut,
          fmt::format(
              "began its trace, and its iterations did not end in {}: it hangs, or they take longer (raise --timeout)",
              Timeout()),
          now);
  }
}

}  // namespace lockstep::agent
