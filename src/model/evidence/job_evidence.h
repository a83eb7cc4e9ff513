#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/evidence/flight_record.h"
#include "model/evidence/log_event.h"
#include "model/evidence/nccl_state.h"
#include "model/evidence/process_state.h"
#include "model/evidence/stack.h"

namespace lockstep::evidence {

/// Evidence that would have helped and is missing.
struct MissingEvidence {
  std::optional<int32_t> rank;
  std::string host;
  std::string what;    ///< "flight_recorder", "python_stacks", "native_stacks", "process_state", "log", "ras", "node".
  std::string reason;  ///< Why it is missing.
  std::string remedy;  ///< How to have it next time, as a command or a setting.
};

/// Whether the process lived when the evidence was collected.
enum class Liveness : uint8_t { kUnknown, kRunning, kGone };
const char* LivenessName(Liveness liveness);  ///< "unknown", "running", "gone".

/// All that is known of one rank.
struct RankEvidence {
  int32_t rank = -1;  ///< Global; -1 only while it is being told from names.
  std::string host;
  int32_t pid = 0;
  Liveness liveness = Liveness::kUnknown;
  int32_t exit_signal = 0;  ///< 0 = none, or unknown.
  std::optional<int32_t> exit_status;
  std::optional<int64_t> collected_unix_ns;
  std::optional<FlightRecord> record;
  std::string record_file;
  /// When the record was made, or the latest possible time (a file's). Ranks make records at different times: a call
  /// that is missing in an earlier record may have been made by the time of a later one.
  std::optional<int64_t> record_unix_ns;
  std::vector<ThreadStack> stacks;
  std::string stacks_file;
  std::optional<ProcessState> process;
  std::vector<LogEvent> log;  ///< In the file's order.
  std::string log_file;       ///< "" = there was none.
  std::vector<MissingEvidence> missing;
};

/// A file or part that could not be read, or only in part.
struct EvidenceProblem {
  std::string file;
  std::optional<int32_t> rank;
  std::string message;   ///< What and where (byte, line), and what was done about it.
  bool skipped = true;   ///< False: the rest of the file is used.
  bool is_note = false;  ///< Nothing was lost: an older dump of a rank was passed over, a file is not evidence.
};

/// All that is known of a job that may be stuck.
struct JobEvidence {
  std::string job_id;
  std::optional<int32_t> world_size;  ///< From the launcher, dumps, environment or logs.
  std::optional<int64_t> collected_unix_ns;
  bool live = false;                ///< Collected by us from running processes, all at about the same time.
  std::vector<RankEvidence> ranks;  ///< By rank, each once.
  std::vector<RasReport> ras;       ///< In the order of asking.
  std::vector<NcclLogFinding> nccl;
  std::vector<LogEvent> log;             ///< Events of no known rank: a launcher's, or a mixed log's without prefixes.
  std::vector<MissingEvidence> missing;  ///< Of the job or of nodes; what ranks miss is with the rank.
  std::vector<EvidenceProblem> problems;
};

}  // namespace lockstep::evidence
