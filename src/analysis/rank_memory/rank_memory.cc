#include "analysis/rank_memory/rank_memory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/median.h"

namespace lockstep::rank_memory {

using model::MemorySample;
using model::MemorySeries;
using model::RankMemory;
using model::RankStages;

namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr double kPressure = 0.90;
constexpr double kLeastImbalance = 1.20;
constexpr int64_t kLeastImbalanceBytes = 128 * kMebibyte;
constexpr double kLeastRise = 1.02;
constexpr int64_t kLeastRiseBytes = 16 * kMebibyte;
constexpr int64_t kMostSlowing = 4;
constexpr double kHourNs = 3.6e12;
constexpr double kMostBytesPerHour = 1e18;  // What int64_t holds: files may lie.

double Ratio(int64_t bytes, int64_t of_bytes) {
  return of_bytes > 0 ? static_cast<double>(bytes) / static_cast<double>(of_bytes) : 0;
}

/// Half of what the middle half of the samples lies apart: of an even rise a quarter.
int64_t HalfSpread(std::vector<int64_t>* bytes) {
  std::sort(bytes->begin(), bytes->end());
  return ((*bytes)[bytes->size() * 3 / 4] - (*bytes)[bytes->size() / 4]) / 2;
}

std::optional<Use> UseOf(const std::vector<MemorySample>& samples) {
  if (samples.empty()) return std::nullopt;
  Use use{.last_bytes = samples.back().bytes};
  for (const MemorySample& sample : samples) use.peak_bytes = std::max(use.peak_bytes, sample.bytes);
  const int64_t third_ns = (samples.back().time_ns - samples.front().time_ns) / 3;
  if (third_ns <= 0) return use;
  std::array<std::vector<int64_t>, 3> thirds;
  for (const MemorySample& sample : samples) {
    thirds[std::min<size_t>(static_cast<size_t>((sample.time_ns - samples.front().time_ns) / third_ns), 2)].push_back(
        sample.bytes);
  }
  const auto is_enough = [](const auto& third) { return third.size() >= kLeastSamples; };
  if (!std::all_of(thirds.begin(), thirds.end(), is_enough)) return use;
  use.third_ns = third_ns;
  for (auto& third : thirds) use.spread_bytes = std::max(use.spread_bytes, HalfSpread(&third));
  use.third_bytes = {Median(&thirds[0]), Median(&thirds[1]), Median(&thirds[2])};
  return use;
}

void FindPressureOnDevices(const std::vector<RankStages>& ranks, Memory* memory) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto& reserved = memory->ranks[i][static_cast<size_t>(Signal::kReserved)];
    const int64_t device_bytes = ranks[i].memory.device_bytes.value_or(0);
    const int64_t retry_count = ranks[i].memory.allocation_retry_count.value_or(0);
    const double ratio = reserved ? Ratio(reserved->peak_bytes, device_bytes) : 0;
    if (ratio < kPressure && (retry_count == 0 || !reserved)) continue;
    memory->findings.push_back({.kind = Kind::kPressure,
                                .signal = Signal::kReserved,
                                .rank_idx = i,
                                .host = ranks[i].host,
                                .bytes = reserved->peak_bytes,
                                .compared_bytes = device_bytes,
                                .ratio = ratio,
                                .retry_count = retry_count});
  }
}

void FindPressureOnHosts(const std::vector<RankStages>& ranks, Memory* memory) {
  std::map<std::string, Finding> hosts;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto& resident = memory->ranks[i][static_cast<size_t>(Signal::kResident)];
    if (!resident || !ranks[i].memory.host_bytes) continue;
    Finding& host = hosts.try_emplace(ranks[i].host, Finding{.host = ranks[i].host, .rank_count = 0}).first->second;
    ++host.rank_count;
    host.bytes += std::min(resident->peak_bytes, INT64_MAX - host.bytes);
    host.compared_bytes = std::max(host.compared_bytes, *ranks[i].memory.host_bytes);
  }
  for (auto& [name, host] : hosts) {
    host.ratio = Ratio(host.bytes, host.compared_bytes);
    if (host.ratio >= kPressure) memory->findings.push_back(std::move(host));
  }
}

void FindImbalance(Signal signal, Memory* memory) {
  std::vector<int64_t> peaks;
  for (const auto& uses : memory->ranks) {
    if (const auto& use = uses[static_cast<size_t>(signal)]) peaks.push_back(use->peak_bytes);
  }
  if (peaks.size() < 2) return;
  const int64_t median = LowerMedian(&peaks);
  for (size_t i = 0; i < memory->ranks.size(); ++i) {
    const auto& use = memory->ranks[i][static_cast<size_t>(signal)];
    if (!use || use->peak_bytes - median < kLeastImbalanceBytes || Ratio(use->peak_bytes, median) < kLeastImbalance) {
      continue;
    }
    memory->findings.push_back({.kind = Kind::kImbalance,
                                .signal = signal,
                                .rank_idx = i,
                                .bytes = use->peak_bytes,
                                .compared_bytes = median,
                                .ratio = Ratio(use->peak_bytes, median)});
  }
}

bool Creeps(const Use& use) {
  if (!use.third_bytes) return false;
  const auto& [early, middle, late] = *use.third_bytes;
  const auto rises = [&use](int64_t from, int64_t to) {
    return to - from >= std::max(kLeastRiseBytes, 2 * use.spread_bytes) && Ratio(to, from) >= kLeastRise;
  };
  return rises(early, middle) && rises(middle, late) && late - middle >= (middle - early) / kMostSlowing;
}

void FindCreep(Signal signal, Memory* memory) {
  for (size_t i = 0; i < memory->ranks.size(); ++i) {
    const auto& uses = memory->ranks[i];
    const auto& use = uses[static_cast<size_t>(signal)];
    if (!use || !Creeps(*use)) continue;
    // What the allocator has given out, it holds.
    const auto& allocated = uses[static_cast<size_t>(Signal::kAllocated)];
    if (signal == Signal::kReserved && allocated && Creeps(*allocated)) continue;
    const auto& [early, middle, late] = *use->third_bytes;
    memory->findings.push_back({.kind = Kind::kCreep,
                                .signal = signal,
                                .rank_idx = i,
                                .bytes = late,
                                .compared_bytes = early,
                                .ratio = Ratio(late, early),
                                .bytes_per_hour = std::min(static_cast<double>(late - early) * kHourNs /
                                                               (2 * static_cast<double>(use->third_ns)),
                                                           kMostBytesPerHour)});
  }
}

}  // namespace

const char* SignalName(Signal signal) {
  switch (signal) {
    case Signal::kAllocated: return "allocated";
    case Signal::kReserved: return "reserved";
    case Signal::kResident: break;
  }
  return "resident";
}

const MemorySeries& SeriesOf(const RankMemory& memory, Signal signal) {
  switch (signal) {
    case Signal::kAllocated: return memory.allocated;
    case Signal::kReserved: return memory.reserved;
    case Signal::kResident: break;
  }
  return memory.resident;
}

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kImbalance: return "imbalance";
    case Kind::kCreep: return "creep";
    case Kind::kPressure: break;
  }
  return "pressure";
}

Memory Assess(const std::vector<RankStages>& ranks) {
  Memory memory;
  memory.ranks.resize(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (const Signal signal : kSignals) {
      memory.ranks[i][static_cast<size_t>(signal)] = UseOf(SeriesOf(ranks[i].memory, signal).samples());
    }
  }
  FindPressureOnDevices(ranks, &memory);
  FindPressureOnHosts(ranks, &memory);
  for (const Signal signal : {Signal::kResident, Signal::kReserved}) FindImbalance(signal, &memory);
  for (const Signal signal : kSignals) FindCreep(signal, &memory);
  std::stable_sort(memory.findings.begin(), memory.findings.end(), [](const Finding& a, const Finding& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.ratio > b.ratio;
  });
  return memory;
}

}  // namespace lockstep::rank_memory
