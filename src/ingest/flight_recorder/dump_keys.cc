#include "ingest/flight_recorder/dump_keys.h"

#include <iterator>
#include <unordered_map>
#include <utility>

namespace lockstep::ingest {

namespace {

// Newer names before older ones.
constexpr std::pair<std::string_view, DumpKey> kWords[] = {
    {"version", DumpKey::kVersion},
    {"pg_config", DumpKey::kPgConfig},
    {"comm_lib_version", DumpKey::kLibraryVersion},
    {"nccl_version", DumpKey::kLibraryVersion},  // Before 2.10.
    {"pg_status", DumpKey::kPgStatus},
    {"entries", DumpKey::kEntries},
    {"nccl_comm_state", DumpKey::kCommunicatorState},
    {"rank", DumpKey::kRank},
    {"global_rank", DumpKey::kRank},
    {"desc", DumpKey::kDescription},
    {"ranks", DumpKey::kRanks},
    {"last_enqueued_collective", DumpKey::kLastEnqueued},
    {"last_started_collective", DumpKey::kLastStarted},
    {"last_completed_collective", DumpKey::kLastCompleted},
    {"name", DumpKey::kName},
    {"filename", DumpKey::kFileName},
    {"line", DumpKey::kLine},
    {"scheduled", DumpKey::kScheduled},
    {"started", DumpKey::kStarted},
    {"completed", DumpKey::kCompleted},
    {"frames", DumpKey::kFrames},
    {"record_id", DumpKey::kRecordId},
    {"pg_id", DumpKey::kPgId},
    {"process_group", DumpKey::kProcessGroup},
    {"thread_name", DumpKey::kThreadName},
    {"thread_id", DumpKey::kThreadId},
    {"collective_seq_id", DumpKey::kCollectiveSequence},
    {"seq_id", DumpKey::kCollectiveSequence},  // Before 2.2, p2p included.
    {"p2p_seq_id", DumpKey::kP2pSequence},
    {"op_id", DumpKey::kOperationId},
    {"profiling_name", DumpKey::kProfilingName},
    {"time_created_ns", DumpKey::kTimeCreatedNs},
    {"time_created_us", DumpKey::kTimeCreatedUs},  // Before 1.x.
    {"duration_ms", DumpKey::kDurationMs},
    {"input_sizes", DumpKey::kInputSizes},
    {"input_dtypes", DumpKey::kInputDtypes},
    {"output_sizes", DumpKey::kOutputSizes},
    {"output_dtypes", DumpKey::kOutputDtypes},
    {"state", DumpKey::kState},
    {"time_discovered_started_ns", DumpKey::kTimeStartedNs},
    {"time_discovered_started_us", DumpKey::kTimeStartedUs},
    {"time_discovered_completed_ns", DumpKey::kTimeCompletedNs},
    {"time_discovered_completed_us", DumpKey::kTimeCompletedUs},
    {"retired", DumpKey::kRetired},
    {"timeout_ms", DumpKey::kTimeoutMs},
    {"is_p2p", DumpKey::kIsP2p},
};

}  // namespace

DumpKey DumpKeyOf(std::string_view word) {
  static const std::unordered_map<std::string_view, DumpKey> keys(std::begin(kWords), std::end(kWords));
  const auto found = keys.find(word);
  return found == keys.end() ? DumpKey::kOther : found->second;
}

std::string_view DumpKeyName(DumpKey key) {
  for (const auto& [word, meaning] : kWords) {
    if (meaning == key) return word;
  }
  return "";
}

}  // namespace lockstep::ingest
