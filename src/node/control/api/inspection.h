#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/evidence/inspected_process.h"
#include "node/control/api/process.h"

namespace lockstep::control {

/// How thoroughly processes are inspected.
enum class InspectionDepth : uint8_t {
  kGlance,  ///< The kernel's counters only: does it make progress? No process is stopped.
  kFull,    ///< Stacks, state, its own dump.
};

/// A request to inspect a node: which processes, registered or not, and which facts. All that is set must hold.
struct InspectionSpec {
  std::string job_id;                              ///< Empty: any.
  std::vector<int32_t> pids;                       ///< Of the process or an ancestor of it.
  std::vector<std::pair<int32_t, int32_t>> ranks;  ///< Inclusive ranges; empty: any.
  InspectionDepth depth = InspectionDepth::kFull;
  bool python_stacks = true;
  bool native_stacks = true;
  bool flight_record = true;
  bool devices = true;
  bool ras = true;                        ///< NCCL's RAS, twice, where a process of the job listens for it.
  int64_t state_window_ns = 500'000'000;  ///< 1 ms .. 10 s.
  int64_t deadline_ns = 20'000'000'000;   ///< 100 ms .. 30 s: for the looking, after its turn has come.
};

/// A process and how far it has come; the counts mean something against an earlier glance at the same process only.
struct ProcessGlance {
  int32_t pid = 0;
  uint64_t start_ticks = 0;
  int32_t launcher_pid = 0;  ///< Its parent, which tells apart jobs of one name; 0 = unknown.
  uint32_t uid = 0;
  std::optional<int32_t> rank;
  std::optional<int32_t> world_size;
  JobKind job_kind = JobKind::kNone;
  std::string job_id;
  std::string command;
  std::string state;  ///< /proc's letter for the main thread; "" = unknown.
  int64_t main_switches = 0;
  int64_t main_cpu_ns = 0;
  int64_t cpu_ns = 0;
  int64_t threads_cpu_ns = 0;  ///< Of threads beside the main one that may carry the work.
  std::string wait_channel;
};

/// What NCCL's RAS said when asked through a process of the job; what ingest::ReadRasReport reads.
struct RasReply {
  std::string address;  ///< That was asked, on the node.
  std::string text;     ///< As it came.
  bool is_json = false;
  int64_t asked_unix_ns = 0;  ///< By the node's clock.
};

enum class InspectionState : uint8_t {
  kQueued,  ///< One before it is under way.
  kRunning,
  kDone,
};

/// An inspection of one node and what it gave.
struct Inspection {
  std::string id;  ///< [a-z0-9]{16}; random.
  InspectionState state = InspectionState::kQueued;
  std::string host;
  int64_t now_unix_ns = 0;                            ///< The node's wall clock while it answers.
  std::vector<ProcessGlance> glances;                 ///< One a process that was found, by job, rank, then pid.
  std::vector<evidence::InspectedProcess> processes;  ///< With kFull, in the order of `glances`.
  std::vector<RasReply> ras;                          ///< In the order of asking; RAS knows all nodes of the job.
  std::vector<evidence::MissingEvidence> missing;     ///< Of the node; what a process misses is with it.
};

const char* InspectionStateName(InspectionState state);  ///< "queued", "running", "done".

}  // namespace lockstep::control
