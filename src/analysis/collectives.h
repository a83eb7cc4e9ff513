#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/collective_kind.h"
#include "analysis/rank_context.h"
#include "base/ids.h"

namespace lockstep::analysis {

/// How the instances of a collective were joined across ranks, in order of trust.
enum class MatchBasis : uint8_t { kSequence, kOrder };
const char* MatchBasisName(MatchBasis basis);

/// Where a rank's CPU issued a collective.
struct CollectiveIssue {
  int64_t trace_ns = 0;    ///< Start of the launch call, or of the c10d call; the rank's own clock.
  int64_t process_id = 0;  ///< As in Track.
  int64_t thread_id = 0;
};

/// One rank's part in a collective instance. Times are RunNs (aligned clock) unless named otherwise.
struct CollectiveMember {
  size_t rank_index = 0;
  /// Start of the rank's kernel; CPU jobs: of its collective range.
  int64_t arrival_ns = 0;
  int64_t end_ns = 0;
  /// Last arrival - own arrival, and where the collective is not synchronising no more than the own duration (the root
  /// of a broadcast may leave early). Absent when a member's window lacks it. Of a synchronising one that
  /// is some_unrecorded: up to the last arrival of those that were recorded, so that it is at least so long.
  std::optional<int64_t> wait_ns;
  int64_t trace_start_ns = 0;                 ///< The same arrival on the rank's own clock.
  int64_t trace_end_ns = 0;                   ///< The same end on the rank's own clock.
  int64_t duration_ns = 0;                    ///< Of the kernel or range; needs no clock.
  std::optional<CollectiveIssue> issue = {};  ///< Absent when the launch call is not in the file.
  /// What this member calls: of a send_recv, one sends and one receives.
  CollectiveKind kind = CollectiveKind::kOther;
};

/// One collective instance, all ranks. Source: docs/metrics.md#collectives.
struct CollectiveInstance {
  int32_t window = 0;
  std::string group;     ///< Process group name, description or member list; "default" when unknown.
  int64_t sequence = 0;  ///< "Seq" where recorded, else the order in the group from 0.
  MatchBasis basis = MatchBasis::kOrder;
  std::string name;  ///< all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, send, recv, ...
  std::optional<int64_t> bytes;           ///< Size in nccl-tests' convention (whole buffer); absent when not recorded.
  std::vector<CollectiveMember> members;  ///< By rank.
  std::vector<Rank> missing_ranks;        ///< Members that have a trace in this window which lacks it.
  std::optional<int32_t> group_size;      ///< Members of the group, with or without a trace; the n of busbw.
  bool synchronising = false;  ///< No member can finish before all have arrived (all_reduce, ..., not broadcast).
  bool complete = false;       ///< Every member of the group is here.
  /// Not complete only because a member has no trace in this window: who else was late among those here can be told.
  bool some_unrecorded = false;
  /// Time of the collective itself after all members have arrived; absent unless complete. Synchronising ones: the
  /// shortest member's duration (that of the last to arrive, which waits for no other; no clock is involved). Others:
  /// last end - last arrival.
  std::optional<int64_t> transfer_ns;
  std::optional<double> algbw_bytes_per_s;
  std::optional<double> busbw_bytes_per_s;
  std::optional<size_t> last_rank_index;  ///< The late one; absent when the margin is below the clocks' uncertainty.
  /// Of one that is some_unrecorded: how long each member waited on after the last of them had arrived, for a rank that
  /// was not recorded and came later still; then none of them is `last_rank_index`.
  int64_t unrecorded_wait_ns = 0;
};

/// True if the members' arrivals tell who waited for whom.
bool TellsWaits(const CollectiveInstance& instance);

struct Collectives {
  static constexpr std::string_view kPass = "collectives";

  std::vector<CollectiveInstance> instances;  ///< By (window, first arrival, group, sequence).
  std::vector<model::LedgerEntry>
      notes;  ///< What matching found doubtful; AlignClocks copies them to the run's ledger.
};

/// Joins collectives across ranks. Works on trace clocks alone (order and sequence, never time), so it can feed
/// alignment.
Collectives MatchCollectives(const RunContext& shared);

/// Fills arrival, wait, transfer and bandwidth from the ranks' clock maps, and sorts again by aligned arrival.
/// An instance that cannot be one collective (synchronising, and a member ends before another arrives by more than the
/// clocks can be wrong) keeps its members and gets neither wait nor transfer.
void TimeCollectives(const model::Run& run, Collectives* collectives);

/// By (window, first arrival, group, sequence).
void SortInstances(Collectives* collectives);

}  // namespace lockstep::analysis
