#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/hang/operation.h"
#include "model/evidence/job_evidence.h"

namespace lockstep::hang {

constexpr uint32_t kNone = UINT32_MAX;

/// What has to be equal on all members of a group at one sequence number, with what may differ by the operation's
/// rules left out (all_to_all's sizes, scatter's inputs, gather's outputs). Equal ids are equal content, job-wide.
struct Signature {
  OperationKind kind = OperationKind::kOther;
  uint32_t name = 0;            ///< Of kOther, into JobView::texts; else 0.
  int64_t elements = -1;        ///< Of the tensors that have to agree; -1 = may differ, or not recorded.
  uint32_t dtype = 0;           ///< Into JobView::texts; 0 = may differ, or not recorded.
  std::vector<uint32_t> parts;  ///< Of a coalesced launch: its operations, in order.
  bool operator==(const Signature&) const = default;
};

/// One launch of one rank in one group. A coalesced launch is one call.
struct Call {
  int64_t sequence = 0;
  uint32_t signature = 0;  ///< Into JobView::signatures.
  uint32_t entry = 0;      ///< Its first, into FlightRecord::entries.
  uint32_t site = 0;       ///< Into JobView::sites; 0 = no stack.
  bool done = false;
};

/// One send or receive, ranks global.
struct P2pCall {
  int64_t order = 0;  ///< Entry's index: order of issue within the rank.
  int32_t peer = -1;  ///< -1 = not told.
  uint32_t entry = 0;
  uint32_t site = 0;
  int64_t elements = -1;
  bool is_send = false;
  bool done = false;
};

/// What one rank did in one group.
struct Track {
  uint32_t rank_index = 0;  ///< Into JobView::ranks.
  int32_t rank = 0;
  std::vector<Call> calls;  ///< By sequence, each once.
  std::vector<P2pCall> p2p;
  std::optional<int64_t> last_enqueued;  ///< Of pg_status; see `status_counts_operations`.
  std::optional<int64_t> last_started;
  std::optional<int64_t> last_completed;
  bool status_counts_operations = false;  ///< Gloo: the above count op_id, p2p and unrecorded operations included.
  bool on_device = false;                 ///< NCCL and the like: completion is the device's, not the call's.
  int64_t newest_operation_id = evidence::kNotRecorded;
  int64_t issued_upto = 0;    ///< This sequence number and all below were issued.
  bool issued_exact = false;  ///< And none above. False: overwritten, cut off, or not told.
};

struct GroupView {
  std::string name;
  std::string description;
  std::vector<int32_t> members;      ///< Ascending.
  std::vector<int32_t> group_order;  ///< Global rank by group rank; empty where members were inferred.
  bool members_inferred = false;
  uint32_t siblings = 0;      ///< Groups of equal description and size have equal numbers.
  std::vector<Track> tracks;  ///< By rank; of ranks with a record that know the group.
  const Track* TrackOf(int32_t rank) const;
};

struct UserSite {
  std::string_view function;  ///< Views point into the evidence.
  std::string_view file;
  int32_t line = 0;
  uint64_t callers = 0;  ///< Of the user's frames around it: the same line reached another way is another site.
};

struct RankView {
  int32_t rank = 0;
  const evidence::RankEvidence* evidence = nullptr;  ///< nullptr: nothing is known of this rank.
  bool has_record = false;
  bool active_only = false;   ///< The dump holds open operations only.
  bool ring_wrapped = false;  ///< Operations before the oldest entry were overwritten (or left out).
  std::optional<int64_t> oldest_created_ns;
  std::optional<int64_t> newest_created_ns;
  uint32_t newest_entry = kNone;
  std::optional<int64_t> record_ns;      ///< When the record was made (RankEvidence::record_unix_ns).
  std::vector<uint32_t> groups;          ///< Into JobView::groups, those it has a track in.
  std::vector<uint32_t> group_of_local;  ///< FlightRecord's group index to JobView's, kNone = of no use.
};

/// All records brought together: group x sequence x rank, with signatures and call sites that compare by number.
struct JobView {
  const evidence::JobEvidence* job = nullptr;
  std::vector<RankView> ranks;  ///< By rank; all that the world size or any dump tells of.
  std::vector<GroupView> groups;
  std::vector<Signature> signatures;  ///< [0] is of no call.
  std::vector<std::string> texts;     ///< [0] is empty.
  std::vector<UserSite> sites;        ///< [0] is empty.
  uint32_t record_count = 0;
  std::optional<int64_t> newest_created_ns;

  const RankView* RankOf(int32_t rank) const;
  const evidence::FlightEntry& EntryOf(const Track& track, uint32_t entry) const {
    return ranks[track.rank_index].evidence->record->entries[entry];
  }
};

/// Whether a rank issued the call with a sequence number in a group. kUnknown: overwritten, or nothing says.
enum class Issued : uint8_t { kYes, kNo, kUnknown };
Issued HasIssued(const JobView& view, const GroupView& group, int32_t rank, int64_t sequence);
const Call* FindCall(const Track& track, int64_t sequence);

/// Sets members, group_order and members_inferred of all groups: from pg_config if it is reliable, else from the ranks
/// that have entries, the sizes of all_gather, and the pattern of sibling groups, which ranks without a dump complete.
void FindMembers(JobView& view);

/// Cost: O(entries) over `thread_count` threads.
JobView MakeJobView(const evidence::JobEvidence& job, unsigned thread_count);

/// Function, file and line of the innermost frame that is the user's: not of PyTorch, not of the standard library.
/// nullopt where there is none.
bool IsUserFile(std::string_view file);

std::string PlainNameOf(const JobView& view, const Track& track, uint32_t entry);
/// "all_reduce [64, 32] Float".
std::string DescribeCall(const JobView& view, const Track& track, uint32_t entry);

}  // namespace lockstep::hang
