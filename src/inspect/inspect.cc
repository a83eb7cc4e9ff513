#include "inspect/inspect.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "inspect/facts.h"
#include "inspect/native_stacks.h"
#include "inspect/privilege.h"
#include "inspect/proc_files.h"

namespace lockstep::inspect {
namespace {

using evidence::InspectedProcess;
using evidence::Liveness;
using evidence::ThreadStack;

std::string HostName() {
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

Error NoSuchProcess(pid_t pid) {
  return Error{.code = ErrorCode::kNotFound, .message = fmt::format("there is no process {} any more", pid)};
}

/// The process as /proc/PID/stat names it, when this process may look at it at all.
Result<StatFields> CheckProcess(pid_t pid) {
  const auto text = pid > 0 ? ReadProcFile(pid, "stat") : std::nullopt;
  const auto stat = ParseStat(text.value_or(""));
  const auto owner = OwnerOf(pid);
  if (!stat || !owner) return NoSuchProcess(pid);
  if (::geteuid() != 0 && owner->uid != ::geteuid()) {
    return Error{.code = ErrorCode::kPermissionDenied,
                 .message = fmt::format("process {} belongs to user {}: only that user and root may look at it", pid,
                                        owner->uid)};
  }
  if (stat->state == 'Z' || stat->state == 'X') {
    return Error{.code = ErrorCode::kNotFound,
                 .message = fmt::format("process {} has ended and waits for its parent to notice", pid)};
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

void AddNativeStacks(pid_t pid, const InspectOptions& options, int64_t deadline_ns, InspectedProcess* process) {
  std::vector<pid_t> tids;
  for (const ThreadStack& thread : process->stacks) tids.push_back(static_cast<pid_t>(thread.tid));
  NativeStacks stacks = ReadNativeStacks(pid, tids, options.longest_pause_ns, deadline_ns);
  process->longest_pause_ns = std::max(process->longest_pause_ns, stacks.longest_pause_ns);
  for (ThreadStack& thread : process->stacks) {
    const auto found = stacks.frames.find(thread.tid);
    if (found == stacks.frames.end()) continue;
    thread.native = std::move(found->second);
    thread.source = "libdw";
  }
  if (!stacks.reason.empty()) AddMissing(process, "native_stacks", std::move(stacks.reason), std::move(stacks.remedy));
}

Result<InspectedProcess> Inspect(pid_t pid, const InspectOptions& options, int64_t deadline_ns) {
  ASSIGN_OR_RETURN(const StatFields stat, CheckProcess(pid));
  InspectedProcess process;
  process.pid = pid;
  process.start_ticks = stat.start_ticks;
  process.host = HostName();
  process.collected_unix_ns = UnixNs();
  ReadFacts(pid, options, deadline_ns, &process);
  if (options.native_stacks) AddNativeStacks(pid, options, deadline_ns, &process);
  // What was read is only its own when it is still the same process.
  const auto now = ParseStat(ReadProcFile(pid, "stat").value_or(""));
  if (!now || now->start_ticks != stat.start_ticks) return NoSuchProcess(pid);
  process.liveness = now->state == 'Z' || now->state == 'X' ? Liveness::kGone : Liveness::kRunning;
  return process;
}

}  // namespace

Result<InspectedProcess> InspectProcess(pid_t pid, const InspectOptions& options) {
  return Inspect(pid, options, MonotonicNs() + options.deadline_ns);
}

std::vector<InspectedProcess> InspectProcesses(const std::vector<pid_t>& pids, const InspectOptions& options) {
  const int64_t deadline_ns = MonotonicNs() + options.deadline_ns;
  std::vector<InspectedProcess> processes(pids.size());
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < pids.size(); ++i) {
    threads.emplace_back([&, i] {
      Result<InspectedProcess> process = Inspect(pids[i], options, deadline_ns);
      if (process) {
        processes[i] = std::move(*process);
        return;
      }
      processes[i].pid = pids[i];
      processes[i].host = HostName();
      processes[i].collected_unix_ns = UnixNs();
      processes[i].liveness = process.error().code == ErrorCode::kNotFound ? Liveness::kGone : Liveness::kUnknown;
      AddMissing(&processes[i], "process", process.error().message, "");
    });
  }
  threads.clear();
  return processes;
}

}  // namespace lockstep::inspect
