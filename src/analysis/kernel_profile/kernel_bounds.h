#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/kernel_profile.h"

namespace lockstep::analysis {

/// What limits a launch, by its throughputs. Source: docs/metrics.md#kernel-profiles.
enum class KernelBound : uint8_t {
  kUnknown,   ///< A throughput is not in the file.
  kCompute,   ///< The SMs are at 60 % or more, and at least 10 % ahead of the memory system.
  kMemory,    ///< The other way round.
  kBalanced,  ///< Both, within 10 %.
  kLatency,   ///< Neither reaches 60 %: too little work in flight, or none.
};
KernelBound BoundOf(const model::KernelLaunch& launch);
const char* KernelBoundName(KernelBound bound);         ///< "unknown", "compute", "memory", ...
const char* PrecisionName(model::Precision precision);  ///< "fp64", "fp32", "fp16", "tensor".
const char* SummedKindName(model::SummedKind kind);     ///< "kernel", "api", "memory", "range".

/// A launch on the roofline of one kind of arithmetic.
struct RooflinePoint {
  model::Precision precision = model::Precision::kFp32;
  double flops_per_s = 0;
  double peak_flops_per_s = 0;
  double flops_per_byte = 0;        ///< Arithmetic intensity: of bytes to and from DRAM.
  double ridge_flops_per_byte = 0;  ///< Where the device's ceilings meet.
  double roof_flops_per_s = 0;      ///< The ceiling over this launch.
  double roof_ratio = 0;            ///< Achieved, of that ceiling.
  bool approximate = false;         ///< Operations of an instruction depend on the device.
};

/// The kinds of arithmetic that the launch did, most operations first; empty where metrics are missing or 0.
std::vector<RooflinePoint> RooflineOf(const model::KernelLaunch& launch);

/// A name's sums over all ranks, or reports where ranks are not known.
struct NameOverRanks {
  model::SummedKind kind = model::SummedKind::kKernel;
  std::string name;
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = 0;  ///< Of single calls.
  int64_t max_ns = 0;
  size_t report_count = 0;           ///< That have the name.
  std::optional<double> imbalance;   ///< Largest total of a rank over the mean of all ranks; of two ranks and more.
  std::optional<int32_t> most_rank;  ///< Whose that is.
};

/// By (kind, total), the largest first. What two tables say alike of one report (CSV and TSV, ranges by kind and in
/// all) counts once. O(sums log sums).
std::vector<NameOverRanks> SumOverRanks(const model::KernelProfiles& profiles);

}  // namespace lockstep::analysis
