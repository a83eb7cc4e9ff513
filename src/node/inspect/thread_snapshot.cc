#include "node/inspect/thread_snapshot.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/timespec.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/remote_memory.h"
#include "node/inspect/wire.h"

namespace lockstep::inspect {
namespace {

constexpr int kMaxAttempts = 3;          // Of one thread: a busy machine may not run the tracer for so long.
constexpr uint64_t kRedZoneBytes = 128;  // Below the stack pointer, and still the function's own.

enum class Report : uint8_t { kBegins, kHeld, kRefused };

#if defined(__x86_64__)
constexpr bool kKnownMachine = true;
using Registers = user_regs_struct;
void Take(const Registers& from, ThreadSnapshot* snapshot) {
  const std::array<uint64_t, ThreadSnapshot::kRegisterCount> values = {
      from.rax, from.rdx, from.rcx, from.rbx, from.rsi, from.rdi, from.rbp, from.rsp, from.r8,
      from.r9,  from.r10, from.r11, from.r12, from.r13, from.r14, from.r15, from.rip};
  std::copy(values.begin(), values.end(), snapshot->registers.begin());
}
#else
constexpr bool kKnownMachine = false;
struct Registers {};
void Take(const Registers&, ThreadSnapshot*) {}
#endif

void CopyStack(pid_t pid, ThreadSnapshot* snapshot) {
  const uint64_t top = snapshot->registers[ThreadSnapshot::kStackPointer].value_or(0);
  snapshot->stack_address = top > kRedZoneBytes ? top - kRedZoneBytes : top;
  snapshot->stack = ReadMemory(pid, snapshot->stack_address, kStackBytes);
}

/// Kills this process after `ns`, whatever it waits for then; 0 = never.
void SetTimer(timer_t timer, int64_t ns) {
  const itimerspec when = {.it_interval = {}, .it_value = Timespec(ns)};
  ::timer_settime(timer, 0, &when, nullptr);
}

/// Seizes, stops, copies, lets go. Returns errno, or 0 with the snapshot filled.
int HoldOne(pid_t pid, ThreadSnapshot* snapshot) {
  const pid_t tid = snapshot->tid;
  // With SEIZE, unlike ATTACH, no signal is sent that could be lost, and a tracer's death lets the thread go on.
  if (::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) return errno;
  if (::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0) return errno;
  int status = 0;
  pid_t got = 0;
  do {
    got = ::waitpid(tid, &status, __WALL);
  } while (got < 0 && errno == EINTR);
  if (got != tid || !WIFSTOPPED(status)) return ESRCH;
  // A signal that came just then stopped it on its way to the thread: it is passed on.
  const bool by_us = (status >> 16) == PTRACE_EVENT_STOP;
  const int signal_to_pass = by_us ? 0 : WSTOPSIG(status);
  Registers registers = {};
  int error = ::ptrace(PTRACE_GETREGS, tid, nullptr, &registers) == 0 ? 0 : errno;
  if (error == 0) {
    Take(registers, snapshot);
    CopyStack(pid, snapshot);
  }
  ::ptrace(PTRACE_DETACH, tid, nullptr, reinterpret_cast<void*>(static_cast<intptr_t>(signal_to_pass)));
  return error;
}

void Trace(pid_t pid, const std::vector<pid_t>& tids, int64_t longest_pause_ns, const WorkerPipe& pipe) {
  ::setpriority(PRIO_PROCESS, 0, -10);  // So that nobody keeps us from letting go; only root may.
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer = {};
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
  for (const pid_t tid : tids) {
    WireWriter begins;
    begins.Put(Report::kBegins);
    begins.Put(tid);
    if (!pipe.Send(begins.bytes())) return;
    ThreadSnapshot snapshot = {.tid = tid};
    SetTimer(timer, longest_pause_ns);
    const int64_t start_ns = MonotonicNs();
    const int error = HoldOne(pid, &snapshot);
    const int64_t pause_ns = MonotonicNs() - start_ns;
    SetTimer(timer, 0);
    WireWriter report;
    report.Put(error == 0 ? Report::kHeld : Report::kRefused);
    report.Put(tid);
    report.Put(int32_t{error});
    report.Put(pause_ns);
    for (const auto& value : snapshot.registers) report.Put(value.value_or(0));
    report.Put(snapshot.stack_address);
    report.PutText(snapshot.stack);
    if (!pipe.Send(report.bytes())) return;
  }
}

/// Takes a tracer's reports over; `open` is the thread that it was at when it ended, 0 = none.
void TakeReports(const WorkerOutcome& outcome, HeldThreads* held, std::vector<pid_t>* done, pid_t* open) {
  for (const std::string& message : outcome.messages) {
    WireReader reader(message);
    const auto report = reader.Get<Report>();
    ThreadSnapshot snapshot = {.tid = reader.Get<pid_t>()};
    if (report == Report::kBegins) {
      *open = snapshot.tid;
      continue;
    }
    *open = 0;
    const auto error = reader.Get<int32_t>();
    snapshot.pause_ns = reader.Get<int64_t>();
    for (auto& value : snapshot.registers) value = reader.Get<uint64_t>();
    snapshot.stack_address = reader.Get<uint64_t>();
    snapshot.stack = reader.GetText();
    if (!reader.ok()) continue;
    done->push_back(snapshot.tid);
    if (report == Report::kHeld) {
      held->longest_pause_ns = std::max(held->longest_pause_ns, snapshot.pause_ns);
      held->snapshots.push_back(std::move(snapshot));
    } else {
      held->refused.push_back({.tid = snapshot.tid, .error = error});
    }
  }
}

struct Ran {
  std::string call;
  std::string switches;
  bool operator==(const Ran&) const = default;
};
/// Equal before and after: the thread slept all the while.
std::optional<Ran> HowFar(pid_t pid, pid_t tid) {
  auto call = ReadProcFile(pid, fmt::format("task/{}/syscall", tid));
  const auto status = ReadProcFile(pid, fmt::format("task/{}/status", tid));
  if (!call || !status) return std::nullopt;
  const size_t switches = status->find("voluntary_ctxt_switches");
  if (switches == std::string::npos) return std::nullopt;
  return Ran{.call = std::move(*call), .switches = status->substr(switches)};
}

}  // namespace

bool CanTakeSnapshots() { return kKnownMachine; }

std::optional<ThreadSnapshot> SnapshotSleeping(pid_t pid, pid_t tid) {
  if (!kKnownMachine) return std::nullopt;
  const auto before = HowFar(pid, tid);
  if (!before) return std::nullopt;
  const auto call = ParseBlockedCall(before->call);
  // Outside of a system call (a fault, a stop) the registers matter more than these two.
  if (!call || call->number < 0 || call->stack_pointer == 0) return std::nullopt;
  ThreadSnapshot snapshot = {.tid = tid};
  snapshot.registers[ThreadSnapshot::kStackPointer] = call->stack_pointer;
  snapshot.registers[ThreadSnapshot::kProgramCounter] = call->program_counter;
  CopyStack(pid, &snapshot);
  if (snapshot.stack.empty() || HowFar(pid, tid) != before) return std::nullopt;
  return snapshot;
}

HeldThreads HoldThreads(pid_t pid, std::vector<pid_t> tids, int64_t longest_pause_ns, int64_t deadline_monotonic_ns) {
  HeldThreads held;
  std::map<pid_t, int> attempts;
  while (!tids.empty() && MonotonicNs() < deadline_monotonic_ns) {
    const WorkerOutcome outcome =
        RunWorker([&](const WorkerPipe& pipe) { Trace(pid, tids, longest_pause_ns, pipe); }, deadline_monotonic_ns);
    std::vector<pid_t> done;
    pid_t open = 0;
    TakeReports(outcome, &held, &done, &open);
    std::erase_if(tids, [&](pid_t tid) { return std::find(done.begin(), done.end(), tid) != done.end(); });
    if (open != 0) {
      // It died with this thread in hand; how long that was held is not known, but no longer than its timer.
      held.longest_pause_ns = std::max(held.longest_pause_ns, longest_pause_ns);
      std::erase(tids, open);
      if (++attempts[open] < kMaxAttempts) {
        tids.push_back(open);
      } else {
        held.refused.push_back({.tid = open, .error = 0});
      }
    } else if (done.empty()) {
      break;  // No tracer at all.
    }
  }
  for (const pid_t tid : tids) held.refused.push_back({.tid = tid, .error = 0});
  return held;
}

}  // namespace lockstep::inspect
