#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/stages/rank_stages.h"

namespace lockstep::rank_memory {

enum class Signal : uint8_t { kResident, kAllocated, kReserved };
inline constexpr std::array kSignals = {Signal::kResident, Signal::kAllocated, Signal::kReserved};
/// "resident", "allocated", "reserved".
const char* SignalName(Signal signal);
const model::MemorySeries& SeriesOf(const model::RankMemory& memory, Signal signal);

/// One signal of one rank over the run.
struct Use {
  int64_t peak_bytes = 0;
  int64_t last_bytes = 0;
  /// Medians of the run's thirds; absent where one of them has fewer than kLeastSamples.
  std::optional<std::array<int64_t, 3>> third_bytes = {};
  int64_t spread_bytes = 0;  ///< Half the distance of a third's quartiles, of the most uneven third.
  int64_t third_ns = 0;      ///< From the middle of one to that of the next.
};

enum class Kind : uint8_t {
  kPressure,   ///< Nearly all that the device or the host has is taken.
  kImbalance,  ///< One rank needs clearly more than the median rank.
  kCreep,      ///< A rank's use rises from each third of the run to the next.
};
/// "pressure", "imbalance", "creep".
const char* KindName(Kind kind);

struct Finding {
  Kind kind = Kind::kPressure;
  Signal signal = Signal::kResident;
  std::optional<size_t> rank_idx = {};  ///< Of the rank; of pressure on a host none.
  std::string host = {};                ///< Under pressure.
  int64_t rank_count = 1;               ///< How many take the host's memory.
  int64_t bytes = 0;                    ///< What is taken at most; of creep, what the last third takes.
  int64_t compared_bytes = 0;           ///< With what there is; what the median rank takes; what the first third took.
  double ratio = 0;                     ///< bytes / compared_bytes.
  double bytes_per_hour = 0;            ///< Of creep.
  int64_t retry_count = 0;              ///< Of pressure on a device: allocations for which the cache was freed.
};

/// What was measured of a job's memory.
struct Memory {
  /// By rank, in the order given, by Signal; nullopt: not measured.
  std::vector<std::array<std::optional<Use>, kSignals.size()>> ranks;
  std::vector<Finding> findings;  ///< By kind, each the largest ratio first.
};

constexpr size_t kLeastSamples = 3;

/// Pure. Pressure: from 90 % on, or where the allocator had to free its cache. Imbalance: a fifth and 128 MiB above the
/// median rank, of two in the middle the lower. Creep: from each third to the next 2 %, 16 MiB and twice the spread
/// inside of one, and the second rise is a quarter of the first at least: what fills up slows down.
Memory Assess(const std::vector<model::RankStages>& ranks);

}  // namespace lockstep::rank_memory
