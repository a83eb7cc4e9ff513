#include "analysis/parallelism/device_peak.h"

#include <array>

namespace lockstep::analysis {
namespace {

constexpr double kTera = 1e12;
constexpr std::optional<double> kUnstated = std::nullopt;  // by the sheet

/// In order: longer names before the ones they contain. Sheets that state peaks with sparsity are halved.
const std::array<DevicePeak, 15> kPeaks = {{
    {"H100 PCIe", 756 * kTera, 756 * kTera, 378 * kTera, 51 * kTera, 2.0 * kTera, "NVIDIA H100 datasheet (PCIe)"},
    {"H100 NVL", 835 * kTera, 835 * kTera, 418 * kTera, 60 * kTera, 3.9 * kTera, "NVIDIA H100 datasheet (NVL)"},
    {"H100", 989.5 * kTera, 989.5 * kTera, 494.5 * kTera, 67 * kTera, 3.35 * kTera, "NVIDIA H100 datasheet (SXM)"},
    {"H200", 989.5 * kTera, 989.5 * kTera, 494.5 * kTera, 67 * kTera, 4.8 * kTera, "NVIDIA H200 datasheet (SXM)"},
    {"B200", 2250 * kTera, 2250 * kTera, 1100 * kTera, 75 * kTera, 7.7 * kTera,
     "NVIDIA Blackwell datasheet (HGX B200)"},
    {"A100-SXM4-80GB", 312 * kTera, 312 * kTera, 156 * kTera, 19.5 * kTera, 2.039 * kTera, "NVIDIA A100 datasheet"},
    {"A100-SXM4-40GB", 312 * kTera, 312 * kTera, 156 * kTera, 19.5 * kTera, 1.555 * kTera, "NVIDIA A100 datasheet"},
    {"A100 80GB PCIe", 312 * kTera, 312 * kTera, 156 * kTera, 19.5 * kTera, 1.935 * kTera, "NVIDIA A100 datasheet"},
    {"A100-PCIE-40GB", 312 * kTera, 312 * kTera, 156 * kTera, 19.5 * kTera, 1.555 * kTera, "NVIDIA A100 datasheet"},
    {"V100-SXM2", kUnstated, 125 * kTera, kUnstated, 15.7 * kTera, 0.9 * kTera, "NVIDIA V100 datasheet (SXM2)"},
    {"V100-PCIE", kUnstated, 112 * kTera, kUnstated, 14 * kTera, 0.9 * kTera, "NVIDIA V100 datasheet (PCIe)"},
    {"L40S", 362 * kTera, 362 * kTera, 183 * kTera, 91.6 * kTera, 0.864 * kTera, "NVIDIA L40S datasheet"},
    {"NVIDIA L4", 121 * kTera, 121 * kTera, 60 * kTera, 30.3 * kTera, 0.3 * kTera, "NVIDIA L4 datasheet"},
    {"MI300X", 1307.4 * kTera, 1307.4 * kTera, 653.7 * kTera, 163.4 * kTera, 5.3 * kTera,
     "AMD Instinct MI300X datasheet"},
    {"MI325X", 1307.4 * kTera, 1307.4 * kTera, 653.7 * kTera, 163.4 * kTera, 6.0 * kTera,
     "AMD Instinct MI325X datasheet"},
}};

}  // namespace

const char* PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::kBf16: return "bf16";
    case Precision::kFp16: return "fp16";
    case Precision::kTf32: return "tf32";
    case Precision::kFp32: return "fp32";
    case Precision::kOther: return "other";
  }
  return "other";
}

std::optional<double> DevicePeak::FlopsPerSecond(Precision precision) const {
  switch (precision) {
    case Precision::kBf16: return bf16_flops_per_s;
    case Precision::kFp16: return fp16_flops_per_s;
    case Precision::kTf32: return tf32_flops_per_s;
    case Precision::kFp32: return fp32_flops_per_s;
    case Precision::kOther: return std::nullopt;
  }
  return std::nullopt;
}

const DevicePeak* FindDevicePeak(std::string_view device_name) {
  // Whole words only: "NVIDIA L4" is not "NVIDIA L40".
  for (const DevicePeak& peak : kPeaks) {
    const size_t at = device_name.find(peak.name);
    if (at == std::string_view::npos) continue;
    const size_t behind = at + peak.name.size();
    const bool ends_word = behind == device_name.size() || device_name[behind] == ' ' || device_name[behind] == '-';
    const bool begins_word = at == 0 || device_name[at - 1] == ' ' || device_name[at - 1] == '-';
    if (ends_word && begins_word) return &peak;
  }
  return nullptr;
}

}  // namespace lockstep::analysis
