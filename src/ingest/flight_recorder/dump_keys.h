#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::ingest {

/// The words of a dump that mean something to us: keys of its dicts and names of states.
enum class DumpKey : uint8_t {
  kOther,
  // Of the dump itself.
  kVersion,
  kPgConfig,
  kLibraryVersion,
  kPgStatus,
  kEntries,
  kCommunicatorState,
  kRank,  ///< No dump of PyTorch's has it; who collects several puts it in.
  // Of a group in pg_config and pg_status.
  kDescription,
  kRanks,
  kLastEnqueued,
  kLastStarted,
  kLastCompleted,
  // Of a frame; a group has a name too.
  kName,
  kFileName,
  kLine,
  // Values of "state".
  kScheduled,
  kStarted,
  kCompleted,
  // Of an entry: a dict with one of these is an entry.
  kFrames,
  kRecordId,
  kPgId,
  kProcessGroup,
  kThreadName,
  kThreadId,
  kCollectiveSequence,
  kP2pSequence,
  kOperationId,
  kProfilingName,
  kTimeCreatedNs,
  kTimeCreatedUs,
  kDurationMs,
  kInputSizes,
  kInputDtypes,
  kOutputSizes,
  kOutputDtypes,
  kState,
  kTimeStartedNs,
  kTimeStartedUs,
  kTimeCompletedNs,
  kTimeCompletedUs,
  kRetired,
  kTimeoutMs,
  kIsP2p,
};
constexpr int kDumpKeyCount = static_cast<int>(DumpKey::kIsP2p) + 1;

constexpr bool IsEntryKey(DumpKey key) { return key >= DumpKey::kFrames; }
constexpr bool IsFrameKey(DumpKey key) { return key == DumpKey::kFileName || key == DumpKey::kLine; }

DumpKey DumpKeyOf(std::string_view word);   ///< kOther for every other word.
std::string_view DumpKeyName(DumpKey key);  ///< As newer dumps write it.

}  // namespace lockstep::ingest
