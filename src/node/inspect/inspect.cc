#include "node/inspect/inspect.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "base/text_scan.h"
#include "node/inspect/devices.h"
#include "node/inspect/facts.h"
#include "node/inspect/job_dump.h"
#include "node/inspect/native_stacks.h"
#include "node/inspect/privilege.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/python_frames.h"
#include "node/inspect/rings.h"
#include "node/inspect/side_by_side.h"

namespace lockstep::inspect {
namespace {

using evidence::InspectedProcess;
using evidence::Liveness;
using evidence::ThreadStack;

constexpr size_t kMaxAtOnce = 16;  ///< Of processes; each has some five of ours at work.
constexpr int64_t kMaxRank = 100'000'000;
/// A first dump with stacks costs a process 2.5 s of processor time (it imports a part of PyTorch), and all ranks of a
/// node do so at once; the dump without them is there long before.
constexpr int64_t kLongestDumpNs = 15'000'000'000;
constexpr int64_t kLongestDevicesNs = 5'000'000'000;  ///< nvidia-smi takes a second or two where all is well.

std::string HostName() {
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

Error NoSuchProcess(pid_t pid) {
  return Error{.code = ErrorCode::kNotFound, .message = fmt::format("process {} has ended", pid)};
}

/// The process as /proc/PID/stat names it, when this process may look at it at all.
Result<ProcStat> CheckProcess(pid_t pid) {
  const auto text = pid > 0 ? ReadProcFile(pid, "stat") : std::nullopt;
  const auto stat = ParseProcStat(text.value_or(""));
  const auto owner = OwnerOf(pid);
  if (!stat || !owner) return NoSuchProcess(pid);
  if (::geteuid() != 0 && owner->uid != ::geteuid()) {
    return Error{.code = ErrorCode::kPermissionDenied,
                 .message = fmt::format("process {} belongs to user {}: only that user and root may look at it", pid,
                                        owner->uid)};
  }
  if (stat->state == 'Z' || stat->state == 'X') {
    return Error{.code = ErrorCode::kNotFound,
                 .message = fmt::format("process {} has ended, and its parent has not collected its exit status", pid)};
  }
  return *stat;
}

void AddMissing(InspectedProcess* process, std::string what, std::string reason, std::string remedy) {
  process->missing.push_back({.rank = process->rank,
                              .host = process->host,
                              .what = std::move(what),
                              .reason = std::move(reason),
                              .remedy = std::move(remedy)});
}

void TakeNative(NativeStacks stacks, InspectedProcess* process) {
  process->longest_pause_ns = std::max(process->longest_pause_ns, stacks.longest_pause_ns);
  for (ThreadStack& thread : process->stacks) {
    const auto found = stacks.frames.find(thread.tid);
    if (found == stacks.frames.end()) continue;
    thread.native = std::move(found->second);
    thread.source = "libdw";
  }
  if (!stacks.reason.empty()) AddMissing(process, "native_stacks", std::move(stacks.reason), std::move(stacks.remedy));
}

/// Python frames go to the thread of the same id; threads known only from Python are added.
void TakePython(std::vector<ThreadStack> threads, InspectedProcess* process) {
  for (ThreadStack& python : threads) {
    const auto same = std::find_if(process->stacks.begin(), process->stacks.end(), [&](const ThreadStack& thread) {
      return python.tid != 0 && thread.tid == python.tid;
    });
    if (same == process->stacks.end()) {
      if (python.python.empty()) continue;
      process->stacks.push_back(std::move(python));
      continue;
    }
    same->holds_gil |= python.holds_gil;
    if (python.python.empty()) continue;
    same->python = std::move(python.python);
    same->source = std::move(python.source);
  }
}

/// Adds the process's own answer to what was seen from outside.
void TakeJobDump(JobDump dump, const InspectOptions& options, InspectedProcess* process) {
  const auto number = [&](const char* name) -> std::optional<int32_t> {
    const auto found = dump.facts.find(name);
    const auto value = found == dump.facts.end() ? std::nullopt : LeadingNumber(found->second);
    if (!value || *value < 0 || *value > kMaxRank) return std::nullopt;
    return static_cast<int32_t>(*value);
  };
  // What it has joined as counts more than what its environment says.
  if (const auto rank = number("rank")) process->rank = rank;
  if (const auto size = number("world_size")) process->world_size = size;
  if (const auto found = dump.facts.find("torch"); found != dump.facts.end()) process->torch_version = found->second;
  if (options.python_stacks) TakePython(std::move(dump.threads), process);
  if (!options.flight_record) return;
  process->record_format = dump.record.empty() ? "" : dump.format;
  process->record_source = dump.record.empty() ? "" : dump.source;
  process->record_unix_ns = dump.record.empty() ? 0 : dump.record_unix_ns;
  process->record_bytes = std::move(dump.record);
  if (!process->record_bytes.empty()) return;
  if (!process->ring_bytes.empty()) {
    process->record_unix_ns = process->collected_unix_ns;
  } else {
    AddMissing(process, "flight_recorder", std::move(dump.reason), std::move(dump.remedy));
  }
}

Result<InspectedProcess> Inspect(pid_t pid, const InspectOptions& options, int64_t deadline_ns) {
  ASSIGN_OR_RETURN(const ProcStat stat, CheckProcess(pid));
  InspectedProcess process;
  process.pid = pid;
  process.start_ticks = stat.start_ticks;
  process.host = HostName();
  process.collected_unix_ns = UnixNs();
  ReadFacts(pid, options, deadline_ns, &process);

  std::vector<pid_t> tids;
  JobDumpInput input = {.thread_names = {}, .torch_version = process.torch_version, .rank = process.rank.value_or(-1)};
  for (const ThreadStack& thread : process.stacks) {
    tids.push_back(static_cast<pid_t>(thread.tid));
    input.thread_names.push_back(thread.name);
  }
  // A stopped process does not answer, but its threads can still be read.
  const bool is_stopped = process.state && (process.state->state == 'T' || process.state->state == 't');
  NativeStacks native;
  PythonStacks python;
  JobDump dump;
  {
    SideBySide parts;
    if (options.native_stacks)
      parts.Start([&] { native = ReadNativeStacks(pid, tids, options.longest_pause_ns, deadline_ns); });
    if (options.python_stacks) parts.Start([&] { python = ReadPythonStacks(pid, deadline_ns); });
    // Needs nothing of the process, which may be stopped.
    if (options.flight_record) parts.Start([&] { process.ring_bytes = ReadRing(pid, deadline_ns); });
    if ((options.flight_record || options.python_stacks) && !is_stopped)
      parts.Start([&] { dump = ReadJobDump(pid, input, std::min(deadline_ns, MonotonicNs() + kLongestDumpNs)); });
  }
  if (is_stopped) {
    dump.reason = "it is stopped";
    dump.remedy = "continue it (SIGCONT) and ask again";
  }
  if (options.native_stacks) TakeNative(std::move(native), &process);
  TakePython(std::move(python.threads), &process);
  TakeJobDump(std::move(dump), options, &process);
  const bool has_python = std::any_of(process.stacks.begin(), process.stacks.end(),
                                      [](const ThreadStack& thread) { return !thread.python.empty(); });
  if (options.python_stacks && !has_python)
    AddMissing(&process, "python_stacks", std::move(python.reason), std::move(python.remedy));
  // What was read is only its own when it is still the same process.
  const auto now = ParseProcStat(ReadProcFile(pid, "stat").value_or(""));
  if (!now || now->start_ticks != stat.start_ticks) return NoSuchProcess(pid);
  process.liveness = now->state == 'Z' || now->state == 'X' ? Liveness::kGone : Liveness::kRunning;
  return process;
}

InspectedProcess NotInspected(pid_t pid, const Error& error) {
  InspectedProcess process;
  process.pid = pid;
  process.host = HostName();
  process.collected_unix_ns = UnixNs();
  process.liveness = error.code == ErrorCode::kNotFound ? Liveness::kGone : Liveness::kUnknown;
  AddMissing(&process, "process", error.message,
             error.code == ErrorCode::kPermissionDenied ? "ask as that user, or let lockstepd run as root" : "");
  return process;
}

}  // namespace

Result<InspectedProcess> InspectProcess(pid_t pid, const InspectOptions& options) {
  std::vector<InspectedProcess> processes;
  if (auto checked = CheckProcess(pid); !checked) return checked.error();
  processes = InspectProcesses({pid}, options);
  if (processes[0].liveness == Liveness::kGone && !processes[0].state) return NoSuchProcess(pid);
  return std::move(processes[0]);
}

std::vector<InspectedProcess> InspectProcesses(const std::vector<pid_t>& pids, const InspectOptions& options) {
  const int64_t deadline_ns = MonotonicNs() + options.deadline_ns;
  std::vector<InspectedProcess> processes(pids.size());
  std::vector<evidence::DeviceState> devices;
  std::atomic<size_t> next{0};
  {
    SideBySide parts;
    if (options.devices) {
      parts.Start([&] { devices = ReadDevices(std::min(deadline_ns, MonotonicNs() + kLongestDevicesNs)); });
    }
    for (size_t i = 0; i < std::min(pids.size(), kMaxAtOnce); ++i) {
      parts.Start([&] {
        for (size_t at = next++; at < pids.size(); at = next++) {
          Result<InspectedProcess> process = Inspect(pids[at], options, deadline_ns);
          processes[at] = process ? std::move(*process) : NotInspected(pids[at], process.error());
        }
      });
    }
  }
  for (InspectedProcess& process : processes) {
    if (process.state) process.state->devices = devices;
  }
  return processes;
}

}  // namespace lockstep::inspect
