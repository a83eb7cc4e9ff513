#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// Scalasca's wait states. Source: docs/metrics.md#wait-states.
enum class WaitStateKind : uint8_t {
  kLateSender,        ///< A receiver was there before the sender: the receiver waits.
  kLateReceiver,      ///< A sender was there before the receiver: the sender waits.
  kWaitAtCollective,  ///< A member of a synchronising collective waits for the last to arrive.
};
const char* WaitStateKindName(WaitStateKind kind);  ///< "late_sender", "late_receiver", "wait_at_collective".

/// What made a rank late, or a collective slow, first of all.
enum class RootCause : uint8_t {
  kKernel,             ///< Compute kernels ran longer than the peers'.
  kCopy,               ///< Copies and sets ran longer.
  kLaunchDelay,        ///< Launched, and the device had nothing else to do, but the kernel did not start; or the call
                       ///< that launches took long.
  kHost,               ///< The device waited for the CPU, which was in an operator, annotation or Python frame.
  kDataLoading,        ///< The same, in a data loader.
  kGarbageCollection,  ///< The same, in Python's garbage collector.
  kAllocator,          ///< The same, in cudaMalloc, cudaFree, hipMalloc, ...
  kCheckpoint,         ///< The same, in torch.save or another writer of checkpoints.
  kNothingRecorded,    ///< The same, outside of everything that was recorded.
  kSlowLink,           ///< All were there in time; the transfer itself took longer than that of its like.
};
inline constexpr size_t kRootCauseCount = 10;
const char* RootCauseName(RootCause cause);  ///< "kernel", "copy", "launch_delay", "host", "data_loading", ...

/// In which steps a cause showed.
enum class WaitPattern : uint8_t {
  kChronic,    ///< In more than half of the steps.
  kPeriodic,   ///< At least three times, every k-th step and in no other.
  kOneOff,     ///< In one step.
  kIrregular,  ///< Now and then; also where the trace has no steps.
};
const char* WaitPatternName(WaitPattern pattern);

/// Waiting of one rank of one kind.
struct WaitStateRow {
  size_t rank_index = 0;
  WaitStateKind kind = WaitStateKind::kWaitAtCollective;
  uint64_t count = 0;   ///< Collectives or messages with waiting above 0.
  int64_t wait_ns = 0;  ///< Added up over them; waits of several in flight at once count each.
};

/// One link of a chain: at `instance`, `victim` waited for `late`.
struct WaitHop {
  size_t instance = 0;  ///< Index into Collectives::instances.
  size_t victim_rank_index = 0;
  size_t late_rank_index = 0;
  int64_t wait_ns = 0;  ///< What the victim waited there.
};

/// How a cause reached one rank: its worst wait, link by link from that rank to the one that began it.
struct WaitChain {
  size_t victim_rank_index = 0;
  int64_t wait_ns = 0;        ///< All its waiting that goes back to the cause.
  std::vector<WaitHop> hops;  ///< At least one; the last one's late rank is the cause's.
};

/// A first cause of waiting, and what it cost.
struct RootCauseRow {
  RootCause cause = RootCause::kHost;
  /// Whose cause it is. A slow link has one where exactly one rank has part in all that was slow.
  std::optional<size_t> rank_index;
  std::vector<size_t> rank_indices;  ///< That rank, or the ranks among which a slow link is to be sought.
  std::string name;      ///< Kernel, operator, annotation or Python frame with the largest excess; of a link the group.
  int64_t own_ns = 0;    ///< That name's time in the worst stretch; of a link the slowest transfer.
  int64_t peers_ns = 0;  ///< The peers' median of the same.
  int64_t direct_wait_ns = 0;      ///< Waiting of others for this rank itself; of a link, members x excess transfer.
  int64_t propagated_wait_ns = 0;  ///< Waiting for ranks that were late because they waited for this one.
  double wait_ratio = 0;           ///< (direct + propagated) / all waiting of the job; at most 1.
  uint64_t collective_count = 0;   ///< Collectives and messages in which a rank waited because of it.
  int64_t delay_ns = 0;            ///< What the rank lost by it, over its steps.
  std::vector<int64_t> steps;      ///< Numbers of the steps in which it showed, ascending.
  int64_t step_count = 0;          ///< Steps that were looked at.
  WaitPattern pattern = WaitPattern::kIrregular;
  std::optional<int64_t> period_steps;  ///< k of "every k-th step"; only with kPeriodic.
  std::vector<WaitChain> chains;        ///< Largest waiting first, at most 8.
  std::vector<size_t> passed_on_by;     ///< Ranks that passed on a hundredth of its waiting or more, ascending.
};

/// A rank or link that causes more waiting than chance explains, and is named for it.
struct WaitCulprit {
  std::optional<size_t> rank_index;  ///< None: a slow link, and not of one rank.
  std::vector<size_t> rank_indices;  ///< That rank, or those among which the link is.
  std::vector<size_t> causes;        ///< Indices into WaitStates::causes, largest waiting first.
  int64_t wait_ns = 0;               ///< Of its causes together, direct and propagated.
  double wait_ratio = 0;             ///< Of all waiting of the job.
  double chance = 0;     ///< How often, at most, a job whose ranks are alike shows one as much; 0 for a link.
  int64_t delay_ns = 0;  ///< What it lost by its causes.
};

/// What a rank has to do with the waiting of others.
enum class WaitRole : uint8_t {
  kNone,      ///< Nothing that is beyond chance.
  kNamed,     ///< It is behind it: one of WaitStates::culprits.
  kPassesOn,  ///< It was late since it waited for one that is named, and others waited for it.
};
const char* WaitRoleName(WaitRole role);  ///< "none", "straggler", "passes_on".

/// Lateness that was there when the recording began, or whose reasons lie before it.
struct LateStart {
  static constexpr double kLeastRatio = 0.3;

  int64_t wait_ns = 0;    ///< Waiting that goes back to it.
  double wait_ratio = 0;  ///< Of all waiting of the job.
  int64_t spread_ns = 0;  ///< How far apart ranks came to what they called first, at most.
  bool IsWorthAWord() const { return wait_ratio >= kLeastRatio; }
};

struct WaitStates {
  static constexpr std::string_view kPass = "wait_states";

  std::vector<WaitStateRow> rows;     ///< By (rank index, kind); only where something waited.
  std::vector<RootCauseRow> causes;   ///< Largest waiting first.
  int64_t wait_ns = 0;                ///< All waiting of the job: the sum of `rows`.
  std::vector<WaitCulprit> culprits;  ///< The named ranks and links, most waiting first. All outputs use this list.
  LateStart late_start;

  WaitRole RoleOf(size_t rank_index) const;
};

/// Wait states and their first causes. The search starts at each late arrival. It compares what the late rank did since
/// it was last in step with the same stretch of its peers. If the late rank had itself waited for another rank, the
/// search continues there. Nothing is reported below the clocks' uncertainty. In: collectives on one clock
/// (TimeCollectives). Cost: O(members log members + events in late stretches), and pairs of members of a collective
/// where late ranks had themselves waited for many, and for the victims of causes that are told. Source:
/// docs/metrics.md#wait-states.
WaitStates ComputeWaitStates(const RunContext& shared, const Collectives& collectives);

}  // namespace lockstep::analysis
