#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/evidence/job_evidence.h"

namespace lockstep::hang {

enum class VerdictKind : uint8_t {
  kSkippedCollective,
  kExtraCollective,
  kWrongOrder,
  kOperationMismatch,
  kSizeMismatch,
  kDtypeMismatch,
  kStuckOutsideCollective,
  kDeviceStalled,
  kCrash,
  kPeerUnreachable,
  kDeadlock,
  kUnmatchedP2p,
  kStraggler,
  kHealthy,
  kUndecidable,
};
constexpr int kVerdictKindCount = 15;
const char* VerdictKindName(VerdictKind kind);  ///< "skipped_collective", ...

/// Where in the user's code some ranks are, or were when they made a call.
struct CodeSite {
  std::vector<int32_t> ranks;  ///< Ascending.
  std::string role;            ///< "culprit", "victim", "sibling".
  std::string what;            ///< "called all_reduce #4", "is in", "called barrier instead".
  std::string function;        ///< Of the user's innermost frame (not PyTorch's, not the standard library's).
  std::string file;
  int32_t line = 0;
  std::vector<evidence::StackFrame> stack;  ///< Innermost first; may be empty.
};

/// One fact and where it comes from.
struct EvidenceItem {
  std::string source;  ///< "flight_recorder", "python_stack", "native_stack", "process", "log", "ras", "nccl_log".
  std::vector<int32_t> ranks;
  std::string file;          ///< Or place in a file, "" = live.
  std::string fact;          ///< A sentence.
  bool contradicts = false;  ///< Speaks against the verdict.
};

/// One step of a wait-for cycle: `rank` waits in `operation` of `group` for `waits_for`.
struct WaitEdge {
  int32_t rank = 0;
  std::vector<int32_t> waits_for;
  std::string group;
  std::optional<int64_t> sequence;
  std::string operation;
};

struct Verdict {
  VerdictKind kind = VerdictKind::kUndecidable;
  double confidence = 0;               ///< 0 to 1, see docs/hangs.md#confidence. Below 0.5 no rank is named as culprit.
  std::vector<int32_t> culprit_ranks;  ///< Ascending; empty for kHealthy and kUndecidable.
  std::vector<int32_t> victim_ranks;   ///< Ascending; ranks that wait or fail because of them.
  std::string group;                   ///< Its name as on the ranks ("0"); "" = none.
  std::string group_description;       ///< "default_pg".
  std::vector<int32_t> group_ranks;
  std::optional<int64_t> sequence;
  std::string operation;            ///< Without the backend's prefix: "all_reduce".
  std::string explanation;          ///< A sentence or two, plain text.
  std::vector<CodeSite> sites;      ///< First the culprits', then the victims'.
  std::vector<WaitEdge> cycle;      ///< For kDeadlock: closes on its first rank.
  std::vector<std::string> advice;  ///< What to try, the likeliest first.
};

/// One rank's place in one group.
struct RankInGroup {
  int32_t rank = 0;
  std::optional<int64_t> last_enqueued;  ///< Sequence numbers; nullopt = unknown, 0 = none yet.
  std::optional<int64_t> last_started;
  std::optional<int64_t> last_completed;
  std::optional<int64_t> oldest_retained;     ///< Below it the ring has overwritten.
  std::optional<int64_t> open_since_unix_ns;  ///< Its oldest open operation was created then.
  std::string open_operation;                 ///< "" = none open.
  std::vector<int32_t> waits_for;
};

struct GroupState {
  std::string name;
  std::string description;
  std::vector<int32_t> members;    ///< Ascending; those known.
  bool members_inferred = false;   ///< From entries, since the dumps do not say.
  std::vector<RankInGroup> ranks;  ///< Of those with a dump.
};

enum class RankRole : uint8_t { kCulprit, kVictim, kUninvolved, kUnknown };
const char* RankRoleName(RankRole role);

struct RankState {
  int32_t rank = 0;
  std::string host;
  int32_t pid = 0;
  RankRole role = RankRole::kUnknown;
  evidence::Liveness liveness = evidence::Liveness::kUnknown;
  bool has_record = false;
  bool has_stacks = false;
  bool has_log = false;
  std::string doing;  ///< A short phrase: "waits in all_reduce #118 of dp0", "in next_batch, train.py:52".
  std::optional<int64_t> silent_since_unix_ns;  ///< When it last issued anything.
  std::optional<int64_t> mean_lateness_ns;      ///< Behind the first member of each collective.
};

/// Ranks whose main threads have the same Python (else native) stack.
struct StackGroup {
  std::vector<int32_t> ranks;
  std::vector<evidence::StackFrame> frames;  ///< Innermost first.
  std::string source;
};

struct Diagnosis {
  Verdict verdict;
  std::vector<Verdict> context;    ///< Lower-ranked explanations and what follows from the verdict.
  std::vector<GroupState> groups;  ///< By name.
  std::vector<RankState> ranks;    ///< By rank; all that the world size says.
  std::vector<StackGroup> stacks;  ///< Smallest set first.
  std::vector<EvidenceItem> evidence;
  std::vector<evidence::MissingEvidence> missing;  ///< What would help, most useful first.
  std::vector<evidence::EvidenceProblem> problems;
  std::optional<int32_t> world_size;
  std::optional<int64_t> collected_unix_ns;
};

struct DiagnoseOptions {
  unsigned thread_count = 0;  ///< 0 = one a core.
};

/// Says what holds a job up. Never fails: insufficient evidence gives kUndecidable and a list of what to collect.
/// Deterministic for equal evidence. Cost: O(entries) time, O(groups x ranks) memory beside the evidence.
/// Source of the rules: docs/hangs.md#how-it-decides.
Diagnosis Diagnose(const evidence::JobEvidence& job, const DiagnoseOptions& options = {});

}  // namespace lockstep::hang
