#include "model/stages/rank_memory.h"

#include <algorithm>
#include <utility>

namespace lockstep::model {
namespace {

constexpr double kMostBytes = 1e18;

}  // namespace

void MemorySeries::Add(int64_t time_ns, int64_t bytes) {
  time_ns = std::max<int64_t>(time_ns, 0);  // So that any two may be subtracted, whatever a file says.
  if (samples_.empty()) {
    samples_.push_back({time_ns, bytes});
    return;
  }
  time_ns = std::max(time_ns, samples_.back().time_ns);
  while (BucketOf(time_ns) >= kMost) Widen();
  if (BucketOf(samples_.back().time_ns) == BucketOf(time_ns)) {
    samples_.back().bytes = std::max(samples_.back().bytes, bytes);
  } else {
    samples_.push_back({time_ns, bytes});
  }
}

void MemorySeries::Widen() {
  width_ns_ *= 2;
  size_t last = 0;
  for (size_t i = 1; i < samples_.size(); ++i) {
    if (BucketOf(samples_[i].time_ns) == BucketOf(samples_[last].time_ns)) {
      samples_[last].bytes = std::max(samples_[last].bytes, samples_[i].bytes);
    } else {
      samples_[++last] = samples_[i];
    }
  }
  samples_.resize(last + 1);
}

void RankMemory::Take(std::string_view counter, int64_t time_ns, double value) {
  if (!(value >= 0) || value > kMostBytes) return;
  const auto whole = static_cast<int64_t>(value);
  const std::pair<std::string_view, MemorySeries*> series[] = {
      {kResidentMemoryCounter, &resident}, {kAllocatedMemoryCounter, &allocated}, {kReservedMemoryCounter, &reserved}};
  for (const auto& [name, to] : series) {
    if (counter == name) to->Add(time_ns, whole);
  }
  const std::pair<std::string_view, std::optional<int64_t>*> maxima[] = {
      {kHostMemoryCounter, &host_bytes},
      {kPeakMemoryCounter, &peak_allocated_bytes},
      {kDeviceMemoryCounter, &device_bytes},
      {kAllocationRetriesCounter, &allocation_retry_count}};
  for (const auto& [name, to] : maxima) {
    if (counter == name) *to = std::max(to->value_or(0), whole);
  }
}

}  // namespace lockstep::model
