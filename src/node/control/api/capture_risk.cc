#include "node/control/api/capture_risk.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/utf8.h"

namespace lockstep::control {
namespace {

/// The first release with PyTorch's #187141, #187483 and #188172.
constexpr int32_t kMendedMinor = 14;
/// PyTorch 2.6 to 2.13, by time and by steps, on two overloaded cores (docs/reports/kineto-on-demand.md).
constexpr const char* kMeasured =
    "16 of 3,635 captures on overloaded processors ended their process by a segmentation fault or an abort";

/// Whether "2.13.0+cpu" is older than 2.14; one that cannot be read is, and "2.14.0a0+git1f" and "2.14.0.dev20260401".
bool IsBeforeMending(std::string_view version) {
  int32_t numbers[3] = {};  // "2", "13", "0".
  for (int32_t& number : numbers) {
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
    if (error != std::errc()) return true;
    version.remove_prefix(static_cast<size_t>(end - version.data()));
    if (&number == &numbers[2] || version.empty()) break;
    if (version.front() != '.') return true;
    version.remove_prefix(1);
  }
  const bool is_release = version.empty() || version.front() == '+';
  if (numbers[0] != 2) return numbers[0] < 2;
  return numbers[1] < kMendedMinor || (numbers[1] == kMendedMinor && numbers[2] == 0 && !is_release);
}

}  // namespace

std::string CaptureRisk(const Process& process) {
  if (process.tracer == Tracer::kSteps || !IsBeforeMending(process.torch_version)) return "";
  return fmt::format("Kineto in PyTorch {} can crash the process that it traces: {}",
                     process.torch_version.empty() ? "of an unknown version" : Printable(process.torch_version),
                     kMeasured);
}

}  // namespace lockstep::control
