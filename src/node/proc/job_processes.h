#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/control/api/process.h"
#include "node/proc/process_details.h"

namespace lockstep::proc {

/// A process of this node that is a rank, or a lone process with PyTorch; registered with a daemon or not.
struct JobProcess {
  int32_t pid = 0;
  uint32_t uid = 0;
  ProcessDetails details;
  control::ProcessRole role = control::ProcessRole::kTrainer;
};

/// What all must hold of a process; empty: any.
struct JobProcessSelector {
  std::string job_id;                              ///< "123" is "123.pbs01" too.
  std::vector<int32_t> pids;                       ///< Of the process or an ancestor: torchrun's selects its ranks.
  std::vector<std::pair<int32_t, int32_t>> ranks;  ///< Inclusive ranges.
};

struct JobProcesses {
  std::vector<JobProcess> chosen;    ///< By job, rank, then pid. Launchers and helpers are left out.
  uint32_t forbidden_count = 0;      ///< Processes that `pids` name and that are not the caller's to look at.
  std::vector<int32_t> absent_pids;  ///< Of `pids`: there is no such process.
};

/// Finds them in /proc (`root`), whether their environment or a mapped PyTorch tells that they are of a job; a pid that
/// is named and has no ranks below it is taken as it is. `allowed` says whose processes may be read at all. Bounded: at
/// most 65,536 processes. Blocks as long as /proc does (a process can block a reader of its arguments).
JobProcesses FindJobProcesses(const JobProcessSelector& selector, const std::function<bool(uint32_t uid)>& allowed,
                              const std::string& root = "/proc");

/// Numbers of all processes that there are, ascending; at most 65,536.
std::vector<int32_t> ListProcesses(const std::string& root = "/proc");
/// All that /proc says of one. Nullopt: it is gone, or not to be read.
std::optional<JobProcess> ReadJobProcess(int32_t pid, const std::function<bool(uint32_t uid)>& allowed,
                                         const std::string& root = "/proc");
/// Of processes that were read, those that are ranks or lone ones with PyTorch; launchers and helpers are left out. By
/// job, rank, then pid.
std::vector<JobProcess> ChooseRanks(std::vector<JobProcess> processes);

/// How far a process has come, by what the kernel counts. The counts only mean something against an earlier glance.
struct Glance {
  char state = '?';            ///< Of the main thread: R, S, D, T, t, Z, X (gone); '?' = unknown.
  int64_t main_switches = 0;   ///< Context switches of the main thread since it began.
  int64_t main_cpu_ns = 0;     ///< Its processor time.
  int64_t cpu_ns = 0;          ///< Of all threads, in ticks of the kernel's.
  int64_t threads_cpu_ns = 0;  ///< The same of the other threads that live, without those that poll for NCCL.
  std::string wait_channel;    ///< Kernel function that the main thread sleeps in, "" = unknown or none.
};
/// Nullopt: there is no such process any more (of this start). Costs four small reads and one per thread, and stops no
/// process.
std::optional<Glance> ReadGlance(int32_t pid, uint64_t start_ticks, const std::string& root = "/proc");

}  // namespace lockstep::proc
