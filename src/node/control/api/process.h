#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::control {

/// What a registered process is in its job.
enum class ProcessRole : uint8_t {
  kTrainer,   ///< Traced by default: a rank, or a lone process.
  kLauncher,  ///< torchrun and its like: has registered descendants and no rank of its own.
  kHelper,    ///< A DataLoader worker or another child with its parent's rank.
};

/// The present state of a process's profiler, as the daemon knows it.
enum class ProcessState : uint8_t {
  kIdle,       ///< Polls, and is free.
  kRequested,  ///< A request is queued for it, or was handed over and has not begun.
  kTracing,    ///< Its profiler is in use: by a request of ours or by its own torch.profiler.
  kSilent,     ///< Alive, and has not polled for three of its periods.
};

/// The tracer that serves a request.
enum class Tracer : uint8_t {
  kKineto,  ///< PyTorch's own: starts and stops from a thread of its own, at any moment.
  kSteps,   ///< lockstep's (python/lockstep/_capture.py): where steps end, in the thread that trains.
};

/// The launcher or scheduler of a process. Source of the variables: docs/capture.md#ranks.
enum class JobKind : uint8_t { kNone, kSlurm, kPbs, kTorchelastic, kKubernetes, kLsf, kFlux, kMpi };

/// One process that has registered with a node's daemon. Every field but the first five may be unknown: empty, or
/// nullopt.
struct Process {
  std::string id;            ///< "PID-STARTTIME": names the process on its node, across restarts of the daemon; with
                             ///< "-steps" behind it where `tracer` is that.
  int32_t pid = 0;           ///< As the daemon sees it; 0 = in a pid namespace that the daemon cannot see.
  uint64_t start_ticks = 0;  ///< Field 22 of /proc/PID/stat; tells a process from a later one with its pid.
  uint32_t uid = 0;
  std::vector<int32_t> client_pids;  ///< As the process sees them: its own pid, then its ancestors'.
  std::string user;
  std::string host;
  ProcessRole role = ProcessRole::kTrainer;
  ProcessState state = ProcessState::kIdle;
  std::optional<int32_t> rank;  ///< Global, of the innermost launcher.
  std::optional<int32_t> local_rank;
  std::optional<int32_t> world_size;
  JobKind job_kind = JobKind::kNone;
  std::string job_id;    ///< As the scheduler writes it ("123", "123.pbs01", "12_3"); a torchelastic run id otherwise.
  std::string job_step;  ///< SLURM's step ("0"), when there is one.
  std::string command;   ///< Arguments joined by spaces, what looks like a secret replaced by "***"; at most 1 KiB.
  std::string device;    ///< "cuda", "rocm", "xpu" when it holds such a device open, else "cpu".
  std::string torch_version;          ///< "2.13.0+cpu".
  std::string python_version;         ///< "3.11".
  std::vector<std::string> settings;  ///< "NAME=VALUE" of its environment that steer communication; sorted.
  std::string socket;                 ///< "abstract", or the directory of the socket that it uses.
  Tracer tracer = Tracer::kKineto;
  bool counts_iterations = true;  ///< False where this PyTorch is known not to (environment variable empty).
  int64_t first_poll_unix_ns = 0;
  int64_t last_poll_unix_ns = 0;
  int64_t poll_period_ns = 5'000'000'000;  ///< Estimated from its polls; 5 s until there are three.
};

/// How a process ended, as far as known: if it is not, neither signal nor exit status is set.
struct ProcessEnd {
  int64_t unix_ns = 0;  ///< When the daemon noticed: at once, unless it was down.
  std::optional<int32_t> signal = {};
  std::optional<int32_t> exit_status = {};  ///< 0 .. 255.

  /// Known to have been a failure.
  bool IsDeath() const { return signal || exit_status.value_or(0) != 0; }
};

const char* ProcessRoleName(ProcessRole role);     ///< "trainer", "launcher", "helper".
const char* ProcessStateName(ProcessState state);  ///< "idle", "requested", "tracing", "silent".
const char* TracerName(Tracer tracer);             ///< "kineto", "steps".
const char* JobKindName(JobKind kind);             ///< "none", "slurm", "pbs", "torchelastic", ...

/// "was ended by SIGSEGV", "ended with exit status 1", "ended".
std::string EndWords(const ProcessEnd& end);

/// Whether two processes of one node are of one job: its scheduler's or launcher's id and step are the same, or, where
/// there is none, they are ranks that one process has started.
bool IsSameJob(const Process& a, const Process& b);
/// Whether a job's id is the one that is asked for, or that one and more behind a dot ("123" asks for "123.pbs01" too).
/// Nothing asks for all.
bool MatchesJob(std::string_view job_id, std::string_view asked);

}  // namespace lockstep::control
