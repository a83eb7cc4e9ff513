#include "node/inspect/proc_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/nanoseconds.h"
#include "base/small_file.h"
#include "base/text_scan.h"
#include "base/utf8.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/stack_limits.h"
#include "node/inspect/syscall_name.h"
#include "node/inspect/tcp_sockets.h"

namespace lockstep::inspect {
namespace {

std::vector<int64_t> ListThreads(pid_t pid) { return ListNumbers(fmt::format("/proc/{}/task", pid), kMaxThreads); }

/// What `after` counts more than `before`; a thread that began in between counts whole, one that ended is lost.
std::optional<int64_t> Progress(const std::map<int64_t, int64_t>& before, const std::map<int64_t, int64_t>& after) {
  if (after.empty()) return std::nullopt;
  int64_t sum = 0;
  for (const auto& [tid, value] : after) {
    const auto earlier = before.find(tid);
    sum += std::max<int64_t>(value - (earlier == before.end() ? 0 : earlier->second), 0);
  }
  return sum;
}

std::optional<uint64_t> Progress(int64_t before, int64_t after) {
  if (before < 0 || after < before) return std::nullopt;
  return static_cast<uint64_t>(after - before);
}

/// Limit and kills of its cgroup, as this process's own view of the cgroup file systems names it.
void ReadCgroup(pid_t pid, evidence::ProcessState* state) {
  const std::string text = ReadProcFile(pid, "cgroup").value_or("");
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line);) {
    std::string folder;
    bool unified = false;
    if (line.starts_with("0::/")) {
      unified = true;
      folder = fmt::format("/sys/fs/cgroup{}", line.substr(3));
    } else if (const size_t memory = line.find(":memory:"); memory != std::string_view::npos) {
      folder = fmt::format("/sys/fs/cgroup/memory{}", line.substr(memory + 8));
    }
    if (folder.empty() || folder.find("/../") != std::string::npos) continue;
    // Limits hold from any level above: the smallest one counts.
    for (int level = 0; level < 32 && folder.size() > std::string_view("/sys/fs/cgroup").size(); ++level) {
      const auto limit =
          LeadingNumber(ReadSmallFile(folder + (unified ? "/memory.max" : "/memory.limit_in_bytes")).value_or(""));
      if (limit && *limit > 0 && *limit < int64_t{1} << 60 &&
          (!state->memory_limit_bytes || static_cast<uint64_t>(*limit) < *state->memory_limit_bytes))
        state->memory_limit_bytes = static_cast<uint64_t>(*limit);
      if (!state->oom_kill_count) {
        const auto kills = NumberOf(
            ParseFields(ReadSmallFile(folder + (unified ? "/memory.events" : "/memory.oom_control")).value_or("")),
            "oom_kill");
        if (kills) state->oom_kill_count = *kills;
      }
      folder.resize(folder.rfind('/'));
    }
  }
}

}  // namespace

ProcCounters ReadCounters(pid_t pid) {
  ProcCounters counters = {.time_ns = MonotonicNs()};
  const int64_t tick_ns = kSecondNs / std::max<int64_t>(::sysconf(_SC_CLK_TCK), 1);
  for (const int64_t tid : ListThreads(pid)) {
    // schedstat counts nanoseconds; a kernel built without it leaves ticks.
    const auto scheduled = LeadingNumber(ReadProcFile(pid, fmt::format("task/{}/schedstat", tid)).value_or(""));
    if (scheduled) {
      counters.thread_cpu_ns[tid] = *scheduled;
    } else if (const auto stat = ParseProcStat(ReadProcFile(pid, fmt::format("task/{}/stat", tid)).value_or(""))) {
      counters.thread_cpu_ns[tid] = static_cast<int64_t>(stat->cpu_ticks) * tick_ns;
    }
    const auto fields = ParseFields(ReadProcFile(pid, fmt::format("task/{}/status", tid)).value_or(""));
    const auto voluntary = NumberOf(fields, "voluntary_ctxt_switches");
    const auto involuntary = NumberOf(fields, "nonvoluntary_ctxt_switches");
    if (voluntary && involuntary) counters.thread_switches[tid] = *voluntary + *involuntary;
  }
  const auto io = ParseFields(ReadProcFile(pid, "io").value_or(""));
  counters.read_bytes = NumberOf(io, "rchar").value_or(-1);
  counters.write_bytes = NumberOf(io, "wchar").value_or(-1);
  return counters;
}

evidence::ProcessState ReadProcessState(pid_t pid, const ProcCounters& before, const ProcCounters& after) {
  evidence::ProcessState state;
  const auto stat = ParseProcStat(ReadProcFile(pid, "stat").value_or(""));
  state.state = stat ? stat->state : 'X';
  state.window_ns = after.time_ns - before.time_ns;
  state.cpu_ns = Progress(before.thread_cpu_ns, after.thread_cpu_ns);
  state.context_switches = Progress(before.thread_switches, after.thread_switches);
  state.read_bytes = Progress(before.read_bytes, after.read_bytes);
  state.write_bytes = Progress(before.write_bytes, after.write_bytes);
  if (const auto resident = NumberOf(ParseFields(ReadProcFile(pid, "status").value_or("")), "VmRSS"))
    state.resident_bytes = static_cast<uint64_t>(*resident) * 1024;
  ReadCgroup(pid, &state);
  state.sockets = ReadTcpSockets(pid);
  return state;
}

std::vector<evidence::ThreadStack> ReadThreads(pid_t pid) {
  std::vector<evidence::ThreadStack> threads;
  for (const int64_t tid : ListThreads(pid)) {
    const auto stat = ParseProcStat(ReadProcFile(pid, fmt::format("task/{}/stat", tid)).value_or(""));
    if (!stat) continue;
    evidence::ThreadStack thread;
    thread.tid = tid;
    thread.name = Printable(std::string_view(stat->name).substr(0, 64));
    thread.is_main = tid == pid;
    thread.state = stat->state;
    thread.source = "proc";
    // "0" where it runs, or where the kernel keeps it to itself.
    const std::string channel = ReadProcFile(pid, fmt::format("task/{}/wchan", tid), 128).value_or("");
    if (channel != "0") thread.wait_channel = Printable(channel);
    const auto call = ParseBlockedCall(ReadProcFile(pid, fmt::format("task/{}/syscall", tid)).value_or(""));
    if (call) thread.syscall = SyscallName(call->number);
    threads.push_back(std::move(thread));
  }
  std::stable_partition(threads.begin(), threads.end(), [](const evidence::ThreadStack& one) { return one.is_main; });
  return threads;
}

}  // namespace lockstep::inspect
