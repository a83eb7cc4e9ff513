#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/ledger.h"
#include "model/operation_trace.h"

namespace lockstep::analysis {

/// What an operation is to the schedule.
enum class OperationKind : uint8_t {
  kForward,
  kBackward,
  kForwardSend,
  kForwardReceive,
  kBackwardSend,
  kBackwardReceive,
  kParamsGather,
  kGradsScatter,
  kLayernormReduce,
  kEmbeddingReduce,
  kSeparateReduce,
  kCollect,  ///< Python's garbage collection.
  kClip,
  kOptimizer,
  kOther,
};
inline constexpr size_t kOperationKindCount = 15;

/// By the study's names of types; kOther for any other.
OperationKind KindOfType(std::string_view type);
/// Whether it is communication by its nature, which the ideal world gives the median instead of the mean.
bool IsCommunication(OperationKind kind);

/// What every operation of a trace waits for. Operations by their index in the trace.
struct OperationSchedule {
  static constexpr uint32_t kNone = UINT32_MAX;

  std::vector<OperationKind> kinds;  ///< By operation.
  /// By operation: it takes part. Not so: types without a place in the schedule, and second ones of the same worker,
  /// type and sequence.
  std::vector<bool> takes_part;
  struct Dependency {
    uint32_t from = 0;
    uint32_t to = 0;
  };
  std::vector<Dependency> dependencies;  ///< `to` waits for the end of `from`; of one step.
  /// By operation: those of one group transfer together, once the last of them has started. kNone: it waits for no
  /// other operation.
  std::vector<uint32_t> group_of;
  uint32_t group_count = 0;
};

/// The schedule of a training step with data and pipeline parallelism, as the study has it: a chain of compute per
/// worker, sends and receives in chains of their own, paired between stages and tied to the work that they bring or
/// take; collectives of data-parallel neighbours; what follows the last backward. What does not fit (a send without
/// its receive) stands alone and is counted in `ledger`. Cost: O(n log n). Source: docs/metrics.md#what-if-schedule.
OperationSchedule MakeSchedule(const model::OperationTrace& trace, model::Ledger* ledger);

}  // namespace lockstep::analysis
