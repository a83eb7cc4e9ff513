#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/evidence/job_evidence.h"
#include "model/evidence/process_state.h"
#include "model/evidence/stack.h"

namespace lockstep::evidence {

/// The result of one look at one live process: `process.json` of an evidence folder, and a part of the daemon's answer.
struct InspectedProcess {
  int32_t pid = 0;
  uint64_t start_ticks = 0;
  std::string host;
  std::optional<int32_t> rank;
  std::optional<int32_t> local_rank;
  std::optional<int32_t> world_size;
  std::string job_id;
  std::string command;
  std::string torch_version;
  Liveness liveness = Liveness::kRunning;
  int64_t collected_unix_ns = 0;  ///< By the node's clock.
  int64_t longest_pause_ns = 0;   ///< The longest time for which a thread was stopped; 0 = none was.
  std::optional<ProcessState> state;
  std::vector<ThreadStack> stacks;
  std::string record_format;  ///< "pickle", "json", "" = no dump.
  std::string record_source;  ///< Where it came from: "helper", "debug_server", "pipe".
  int64_t record_unix_ns =
      0;                     ///< By the node's clock, when the process began to make it, or was asked to; 0 = unknown.
  std::string record_bytes;  ///< The dump as the process made it. In JSON base64, left out of process.json.
  /// Its records of the NCCL profiler plugin (docs/formats/nccl-ring.md): the newest operations and those in flight;
  /// "" = it has none. In JSON base64, left out of process.json.
  std::string ring_bytes;
  std::string log_tail;  ///< Last 64 KiB of a log that its standard error is open on, "" = none.
  std::string log_path;
  std::vector<MissingEvidence> missing;
};

/// As one JSON object, "lockstep.inspection/1" (docs/formats/evidence-folder.md). Without the record and the log's tail
/// it is a folder's process.json: they lie beside it as files of their own.
std::string WriteInspectedProcess(const InspectedProcess& process, bool with_record);
/// Errors: kCorruptData with what and where; kLimitExceeded beyond 128 MiB, 65,536 threads, 4,096 frames a thread.
/// Unknown fields are passed over; a field of the wrong type is an error.
Result<InspectedProcess> ReadInspectedProcess(std::string_view json);

}  // namespace lockstep::evidence
