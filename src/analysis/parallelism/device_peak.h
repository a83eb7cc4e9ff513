#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::analysis {

/// How a matrix product is computed.
enum class Precision : uint8_t { kBf16, kFp16, kTf32, kFp32, kOther };
const char* PrecisionName(Precision precision);  ///< "bf16", "fp16", "tf32", "fp32", "other".

/// What a device can do at most, as its maker states it: dense (no sparsity), at boost clock.
struct DevicePeak {
  std::string_view name;                   ///< Part of the device's name in the trace.
  std::optional<double> bf16_flops_per_s;  ///< With matrix units.
  std::optional<double> fp16_flops_per_s;  ///< With matrix units.
  std::optional<double> tf32_flops_per_s;  ///< With matrix units.
  std::optional<double> fp32_flops_per_s;  ///< Without matrix units.
  double bandwidth_bytes_per_s = 0;        ///< Of the device's memory.
  std::string_view source;                 ///< The public document.

  std::optional<double> FlopsPerSecond(Precision precision) const;
};

/// The row of a device name as traces have it ("NVIDIA H100 80GB HBM3"); null for a device that is not in the table.
/// Source: docs/metrics.md#device-peaks.
const DevicePeak* FindDevicePeak(std::string_view device_name);

}  // namespace lockstep::analysis
