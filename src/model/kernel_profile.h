#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/ledger.h"

namespace lockstep::model {

/// Kind of arithmetic that a roofline has a ceiling for.
enum class Precision : uint8_t { kFp64, kFp32, kFp16, kTensor };

/// Arithmetic of one kind during a launch, and what the device could do at its clock.
struct FlopRate {
  Precision precision = Precision::kFp32;
  double flops_per_s = 0;
  double peak_flops_per_s = 0;
  bool approximate = false;  ///< Operations of an instruction depend on the device: tensor cores.
};

/// What Nsight Compute advises on a launch.
struct KernelRule {
  std::string name;
  std::string type;  ///< As ncu says: "OPT", "WRN", "INF", "ERR".
  std::string text;
  std::optional<double> speedup_ratio;  ///< Estimated share of the time that would be saved.
  bool speedup_is_local = false;        ///< Of the part that the rule looks at, not of the whole launch.
};

/// One launch of a kernel as Nsight Compute measured it. What the file does not hold is absent.
struct KernelLaunch {
  std::string file;
  std::optional<int32_t> rank;  ///< Of the file's name.
  uint64_t id = 0;              ///< ncu's number of the launch, from 0.
  std::string process;
  std::string kernel;
  std::string device;              ///< "NVIDIA A10G", or ncu's number of it.
  std::string compute_capability;  ///< "8.6"
  std::string grid;                ///< "(512, 1, 1)"
  std::string block;
  std::optional<int64_t> duration_ns;     ///< At ncu's clocks and with cold caches: not the time in the job.
  std::optional<double> compute_ratio;    ///< Throughput of the SMs, of what they sustain at most.
  std::optional<double> memory_ratio;     ///< Throughput of the memory system, likewise.
  std::optional<double> dram_ratio;       ///< Of DRAM alone.
  std::optional<double> occupancy_ratio;  ///< Active warps, of the most that an SM holds.
  std::vector<FlopRate> rates;            ///< By precision.
  std::optional<double> dram_bytes_per_s;
  std::optional<double> dram_peak_bytes_per_s;
  std::vector<std::string> missing_metrics;  ///< Which a roofline at FP32 would have needed.
  bool measured_nothing = false;             ///< Every metric is 0: the counters were not to be had.
  std::vector<KernelRule> rules;
};

/// What a row of `nsys stats` sums up.
enum class SummedKind : uint8_t { kKernel, kApi, kMemory, kRange };

/// A row of one of the *_sum tables of `nsys stats`.
struct NameSum {
  std::string file;
  std::string report;           ///< The file's name without the table's: what was summed up.
  std::optional<int32_t> rank;  ///< Of the file's name.
  SummedKind kind = SummedKind::kKernel;
  std::string name;
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
};

/// What tables of Nsight Compute and `nsys stats` tell of kernels.
struct KernelProfiles {
  std::vector<KernelLaunch> launches;  ///< By file, in its order.
  std::vector<NameSum> sums;           ///< Likewise.
  Ledger ledger;
};

}  // namespace lockstep::model
