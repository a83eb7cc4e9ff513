#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/rank_context.h"
#include "analysis/wait_states/wait_states.h"

namespace lockstep::analysis {

/// Where a late rank spent its extra time.
enum class LateCause : uint8_t {
  kDataLoading,      ///< In a data loader range of a CPU thread.
  kHost,             ///< In another operator, annotation or Python frame of a CPU thread.
  kNothingRecorded,  ///< On the issuing CPU thread, outside everything that was recorded.
  kDeviceCompute,    ///< In compute kernels.
  kDeviceCopy,       ///< In copies and sets.
  kDeviceIdle,       ///< With nothing on the device; the host causes say why.
};
const char* LateCauseName(LateCause cause);  ///< "data_loading", "host", ...

/// What a late rank did more of than its peers between two collectives.
struct LateActivity {
  LateCause cause = LateCause::kHost;
  std::string name;       ///< Operator, annotation, Python frame, "data loading: ...", "device idle", ...
  int64_t excess_ns = 0;  ///< Own time less the median of the other members, summed over the late spells looked at.
};

/// One rank's part in waiting, over complete synchronising collectives of all groups. Times are unions: waits that two
/// collectives share, such as two buckets in flight at once, count once.
struct StragglerRow {
  size_t rank_index = 0;
  uint64_t collective_count = 0;
  uint64_t last_count = 0;    ///< Times it arrived last (beyond the clocks' uncertainty).
  int64_t wait_ns = 0;        ///< Its own waiting for others.
  int64_t wait_given_ns = 0;  ///< Waiting of all others in collectives where it was last, added up over them.
  int64_t delay_ns = 0;       ///< From the second-last arrival to its own, where last: what the job lost to it at most.
  double last_ratio = 0;      ///< last_count / collective_count.
  WaitRole role = WaitRole::kNone;  ///< What the first causes of waiting say of it.
  bool chronic = false;  ///< It is named, and late in most of the steps, not in one (docs/metrics.md#stragglers).
  size_t waiting_rank_count = 0;         ///< Ranks that ever waited for it.
  int64_t step_count = 0;                ///< Steps that hold a collective of the rank; 0 without steps.
  int64_t late_step_count = 0;           ///< Those of them in which it caused more delay than any other rank.
  std::optional<size_t> worst_instance;  ///< Index into Collectives::instances: the one with the most delay.
  std::vector<LateActivity> activities;  ///< Largest excess first, at most 5; empty for ranks that are not late.

  /// The one that explains most; an idle device only where nothing else is known, since it is an effect. Null: none.
  const LateActivity* MainActivity() const;
};

struct Stragglers {
  static constexpr std::string_view kPass = "stragglers";

  std::vector<StragglerRow> rows;  ///< By wait_given_ns, largest first, then rank.
};

/// In: the causes of the waiting, so that a rank is not called late for a delay that another rank caused.
Stragglers ComputeStragglers(const RunContext& shared, const Collectives& collectives, const WaitStates& wait_states);

}  // namespace lockstep::analysis
