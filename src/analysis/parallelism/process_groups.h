#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/parallelism/group_kind.h"
#include "analysis/parallelism/rank_traffic.h"

namespace lockstep::analysis {

/// Calls of one operation in a group, all ranks that have a trace together.
struct GroupOperationRow {
  uint32_t group = 0;  ///< ProcessGroupRow::number.
  CollectiveKind kind = CollectiveKind::kOther;
  uint64_t call_count = 0;
  uint64_t backward_count = 0;        ///< Calls issued during a backward pass.
  std::optional<int64_t> bytes = {};  ///< Sum of the calls' sizes; absent when no call has one.
  int64_t duration_ns = 0;            ///< Sum: waiting for others is in it.
  int64_t exposed_ns = 0;             ///< Sum of their parts in which the rank computes nothing.
};

/// A process group with traffic. Sums are over the member ranks that have a trace.
/// Source: docs/metrics.md#process-groups.
struct ProcessGroupRow {
  uint32_t number = 0;  ///< Place in the table.
  int32_t window = 0;
  std::string name;         ///< As recorded; "default" without metadata, "communicator 0x..." where only that is known.
  std::string description;  ///< As recorded; may be empty.
  std::string backend;      ///< As recorded; may be empty.
  GroupKind kind = GroupKind::kUnknown;
  GroupBasis basis = GroupBasis::kNone;
  Confidence confidence = Confidence::kNone;
  std::string evidence;              ///< A sentence: why this kind, or why none.
  std::optional<int32_t> size = {};  ///< Members, with or without a trace.
  std::vector<int32_t> members;      ///< Global ranks, sorted; the ranks with traffic where the file lists none.
  bool is_world = false;             ///< All ranks of the job.
  std::vector<size_t> rank_indices;  ///< Ranks whose traces have its calls.
  uint64_t call_count = 0;           ///< All operations.
  std::optional<double> calls_per_step = {};  ///< Per rank and step; absent without steps.
  std::optional<int64_t> bytes = {};
  int64_t communication_ns = 0;                    ///< Sum over ranks of |union of its calls|.
  int64_t exposed_ns = 0;                          ///< Sum over ranks of |union of its calls \ compute|.
  std::optional<double> communication_ratio = {};  ///< Of the ranks' spans; absent when they are 0.
  std::optional<double> exposed_ratio = {};
};

/// Joins the ranks' groups and says what each is for. Reads no events. By (window, size descending, first member,
/// name). Cost: O(calls + groups x members).
struct ProcessGroups {
  static constexpr std::string_view kPass = "groups";

  std::vector<ProcessGroupRow> rows;
  std::vector<GroupOperationRow> operations;  ///< By (group, longest first).
};
ProcessGroups FinishGroups(const model::Run& run, const std::vector<RankTraffic>& by_rank_index);

/// Per rank, the row of each of its traffic's groups: what the other passes look kinds up with. SIZE_MAX = none.
std::vector<std::vector<size_t>> RowsOfTraffic(const model::Run& run, const std::vector<RankTraffic>& by_rank_index,
                                               const std::vector<ProcessGroupRow>& rows);

}  // namespace lockstep::analysis
