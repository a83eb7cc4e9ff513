#include "ingest/kernel_profile/roofline_metrics.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace lockstep::ingest {
namespace {

using model::FlopRate;
using model::Precision;

constexpr const char* kSmClock = "sm__cycles_elapsed.avg.per_second";
constexpr const char* kSubClock = "smsp__cycles_elapsed.avg.per_second";
constexpr const char* kDramClock = "dram__cycles_elapsed.avg.per_second";
constexpr const char* kDramPeak = "dram__bytes.sum.peak_sustained";
constexpr const char* kDramRate = "dram__bytes.sum.per_second";
constexpr double kTensorOperations = 512;  // an instruction; differs between devices

struct PrecisionNames {
  Precision precision;
  const char* letter;
};
constexpr std::array<PrecisionNames, 3> kPrecisions = {
    {{Precision::kFp64, "d"}, {Precision::kFp32, "f"}, {Precision::kFp16, "h"}}};

std::string PeakName(const char* letter) {
  return fmt::format("sm__sass_thread_inst_executed_op_{}fma_pred_on.sum.peak_sustained", letter);
}
std::string RateName(const char* letter, const char* operation) {
  return fmt::format("smsp__sass_thread_inst_executed_op_{}{}_pred_on.sum.per_cycle_elapsed", letter, operation);
}

/// Two operations in one half-precision instruction where ncu itself counts them so.
double Packed(const NcuMetrics& metrics, Precision precision) {
  if (precision != Precision::kFp16) return 1;
  return Find(metrics, "derived__sm__sass_thread_inst_executed_op_hfma_pred_on_x4") ? 2 : 1;
}

void AddRate(const NcuMetrics& metrics, const PrecisionNames& names, model::KernelLaunch* launch) {
  const auto sm_hz = Find(metrics, kSmClock), sub_hz = Find(metrics, kSubClock);
  const auto peak = Find(metrics, PeakName(names.letter));
  const auto add = Find(metrics, RateName(names.letter, "add")),
             multiply = Find(metrics, RateName(names.letter, "mul"));
  const auto fused = Find(metrics, RateName(names.letter, "fma"));
  if (!sm_hz || !sub_hz || !peak || !fused || *peak <= 0 || *sm_hz <= 0) return;
  FlopRate rate;
  rate.precision = names.precision;
  const double packed = Packed(metrics, names.precision);
  rate.flops_per_s = packed * (add.value_or(0) + multiply.value_or(0) + 2 * *fused) * *sub_hz;
  rate.peak_flops_per_s = 2 * packed * *peak * *sm_hz;
  launch->rates.push_back(rate);
}

void AddTensorRate(const NcuMetrics& metrics, model::KernelLaunch* launch) {
  const auto sm_hz = Find(metrics, kSmClock), sub_hz = Find(metrics, kSubClock);
  const auto peak = Find(metrics, "sm__inst_executed_pipe_tensor.sum.peak_sustained");
  const auto executed = Find(metrics, "smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed");
  if (!sm_hz || !sub_hz || !peak || !executed || *peak <= 0 || *executed <= 0) return;
  launch->rates.push_back(
      {Precision::kTensor, kTensorOperations * *executed * *sub_hz, kTensorOperations * *peak * *sm_hz, true});
}

}  // namespace

std::optional<double> Find(const NcuMetrics& metrics, std::string_view name) {
  const auto found = metrics.find(name);
  if (found == metrics.end()) return std::nullopt;
  return found->second;
}

void AddRoofline(const NcuMetrics& metrics, model::KernelLaunch* launch) {
  for (const PrecisionNames& names : kPrecisions) AddRate(metrics, names, launch);
  AddTensorRate(metrics, launch);
  const auto rate = Find(metrics, kDramRate), peak = Find(metrics, kDramPeak), clock_hz = Find(metrics, kDramClock);
  if (rate && *rate > 0) launch->dram_bytes_per_s = *rate;
  if (peak && clock_hz && *peak > 0 && *clock_hz > 0) launch->dram_peak_bytes_per_s = *peak * *clock_hz;
  for (const std::string& name :
       {std::string(kSmClock), std::string(kSubClock), std::string(kDramClock), std::string(kDramPeak),
        std::string(kDramRate), PeakName("f"), RateName("f", "add"), RateName("f", "mul"), RateName("f", "fma")}) {
    if (!Find(metrics, name)) launch->missing_metrics.push_back(name);
  }
}

}  // namespace lockstep::ingest
