#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::model {

// Names of the counters: those of liblockstep's own and those of PyTorch's allocator. With "lockstep_" before them they
// are lockstepd's metrics.
inline constexpr std::string_view kResidentMemoryCounter = "rank_resident_memory_bytes";
inline constexpr std::string_view kHostMemoryCounter = "host_memory_total_bytes";
inline constexpr std::string_view kAllocatedMemoryCounter = "torch_memory_allocated_bytes";
inline constexpr std::string_view kReservedMemoryCounter = "torch_memory_reserved_bytes";
inline constexpr std::string_view kPeakMemoryCounter = "torch_memory_peak_bytes";
inline constexpr std::string_view kDeviceMemoryCounter = "torch_memory_total_bytes";
inline constexpr std::string_view kAllocationRetriesCounter = "torch_alloc_retries";

struct MemorySample {
  int64_t time_ns = 0;  ///< The rank's wall clock; never negative.
  int64_t bytes = 0;
};

/// One signal over time, in at most kMost samples however long the job runs: what lies close together becomes one, with
/// the most of it.
class MemorySeries {
 public:
  static constexpr uint64_t kMost = 360;

  /// A time before the newest sample's counts as that.
  void Add(int64_t time_ns, int64_t bytes);
  const std::vector<MemorySample>& samples() const { return samples_; }

 private:
  uint64_t BucketOf(int64_t time_ns) const {
    return (static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(samples_.front().time_ns)) / width_ns_;
  }
  void Widen();

  uint64_t width_ns_ = 100'000'000;
  std::vector<MemorySample> samples_;
};

/// What was recorded of a rank's memory; what was not, is empty.
struct RankMemory {
  MemorySeries resident = {};   ///< Of the process.
  MemorySeries allocated = {};  ///< That PyTorch's allocator has given out on the rank's device,
  MemorySeries reserved = {};   ///< and that it holds.
  std::optional<int64_t> peak_allocated_bytes = {};
  std::optional<int64_t> device_bytes = {};
  std::optional<int64_t> host_bytes = {};
  std::optional<int64_t> allocation_retry_count = {};  ///< For which the allocator freed its cache.

  /// The value of a counter of one of the names above; others are passed over, as are values that cannot be.
  void Take(std::string_view counter, int64_t time_ns, double value);
};

}  // namespace lockstep::model
