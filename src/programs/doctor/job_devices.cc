#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "present/report/format.h"
#include "programs/doctor/job.h"

namespace lockstep::doctor {
namespace {

using evidence::DeviceState;

constexpr double kMiB = 1024.0 * 1024;
constexpr double kHotCelsius = 90;           // Data-centre GPUs slow down from about 85 to 95 on.
constexpr double kMoreGpuMemoryRatio = 1.5;  // Of the median of memory used; a GPU above it stands out,
constexpr double kMoreGpuMemoryMiB = 4096;   // and by so much.
constexpr size_t kLeastToCompare = 3;

/// Bits of clocks_throttle_reasons.active that mean that something is wrong; power caps are everyday.
constexpr std::pair<uint64_t, const char*> kBadReasons[] = {
    {0x08, "hardware slowdown"}, {0x20, "heat"}, {0x40, "heat (hardware)"}, {0x80, "power brake"}};

const char* const kDrainAdvice =
    "look for Xid in that node's dmesg and run nvidia-smi -q there; reset the GPU or take the node out of the job";
const char* const kThrottleAdvice = "nvidia-smi -q -d PERFORMANCE there; look at cooling and power of that node";
const char* const kWidthAdvice = "reseat or replace the card or riser; copies to that GPU are slower until then";

std::string_view FactOf(const DeviceState& device, std::string_view name) {
  for (const auto& [fact, value] : device.facts) {
    if (fact == name) return value;
  }
  return {};
}

/// The number at the beginning, "70000 MiB"; nullopt: there is none.
std::optional<double> NumberOf(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return static_cast<double>(number);
}

std::vector<std::string_view> BadReasons(std::string_view mask) {
  uint64_t bits = 0;
  if (mask.starts_with("0x")) std::from_chars(mask.data() + 2, mask.data() + mask.size(), bits, 16);
  std::vector<std::string_view> reasons;
  for (const auto& [bit, name] : kBadReasons) {
    if ((bits & bit) != 0) reasons.emplace_back(name);
  }
  return reasons;
}

class GpuChecks {
 public:
  explicit GpuChecks(std::vector<Check>* checks) : checks_(checks) {}

  void Look(const std::string& host, const DeviceState& gpu) {
    const std::string subject = fmt::format("{} {}", host, gpu.name);
    if (gpu.name == "nvidia-smi") {
      const bool is_silent = gpu.state == "no answer";
      const std::string_view words = FactOf(gpu, "message");
      Add(host, subject, CheckStatus::kProblem,
          is_silent ? "does not answer: the driver or a GPU may hang"
                    : fmt::format("fails: {}", words.empty() ? "it says nothing" : words),
          kDrainAdvice);
      return;
    }
    ++count_;
    models_.insert(gpu.name.substr(std::min(gpu.name.find(' '), gpu.name.size())));
    LookAtErrors(host, subject, gpu);
    if (const auto reasons = BadReasons(FactOf(gpu, "clocks_throttle_reasons.active")); !reasons.empty()) {
      Add(host, subject, CheckStatus::kWarning, fmt::format("runs below its clock: {}", fmt::join(reasons, ", ")),
          kThrottleAdvice);
    }
    const auto width = NumberOf(FactOf(gpu, "pcie.link.width.current"));
    const auto full_width = NumberOf(FactOf(gpu, "pcie.link.width.max"));
    if (width && full_width && *width < *full_width) {
      Add(host, subject, CheckStatus::kWarning, fmt::format("has {:.0f} of {:.0f} PCIe lanes", *width, *full_width),
          kWidthAdvice);
    }
    const auto celsius = NumberOf(FactOf(gpu, "temperature.gpu"));
    if (celsius) hottest_ = std::max(hottest_.value_or(*celsius), *celsius);
    if (celsius && *celsius >= kHotCelsius) {
      Add(host, subject, CheckStatus::kWarning, fmt::format("is at {:.0f} degrees Celsius", *celsius), kThrottleAdvice);
    }
    const auto used = NumberOf(FactOf(gpu, "memory.used"));
    const auto total = NumberOf(FactOf(gpu, "memory.total"));
    if (used) used_.push_back({*used, host, subject});
    if (used && total) least_free_ = std::min(least_free_.value_or(*total - *used), *total - *used);
  }

  void Sum() {
    std::vector<double> used;
    for (const Used& each : used_) used.push_back(each.mib);
    std::ranges::sort(used);
    const double median = used.empty() ? 0 : used[(used.size() - 1) / 2];
    for (const Used& each : used_) {
      if (used.size() < kLeastToCompare || each.mib <= kMoreGpuMemoryRatio * median ||
          each.mib <= median + kMoreGpuMemoryMiB)
        continue;
      Add(each.host, each.subject, CheckStatus::kWarning,
          fmt::format("holds {}, the median is {}", BytesText(each.mib), BytesText(median)),
          "see which processes use it (nvidia-smi there): another job's, one that was left behind, or an uneven split");
    }
    if (models_.size() > 1) {
      Add("", "", CheckStatus::kWarning, fmt::format("different models:{}", fmt::join(models_, ",")),
          "a job runs at the pace of its slowest GPU; request one model");
    }
    if (is_any_bad_ || count_ == 0) return;
    Check check = Line("gpu", "", CheckStatus::kOk,
                       fmt::format("{} GPUs without errors or slowdown{}", count_,
                                   used.empty() ? std::string()
                                                : fmt::format("; memory used {} to {}", BytesText(used.front()),
                                                              BytesText(used.back()))));
    check.figures.push_back({"gpus", static_cast<double>(count_), "count"});
    if (!used.empty()) check.figures.push_back({"least_used", used.front() * kMiB, "bytes"});
    if (!used.empty()) check.figures.push_back({"most_used", used.back() * kMiB, "bytes"});
    if (least_free_) check.figures.push_back({"least_free", *least_free_ * kMiB, "bytes"});
    if (hottest_) check.figures.push_back({"hottest", *hottest_, "celsius"});
    checks_->push_back(std::move(check));
  }

  size_t count() const { return count_; }
  bool is_any_bad() const { return is_any_bad_; }

 private:
  struct Used {
    double mib = 0;
    std::string host;
    std::string subject;
  };

  static std::string BytesText(double mib) { return report::FormatBytes(static_cast<int64_t>(mib * kMiB)); }

  void LookAtErrors(const std::string& host, const std::string& subject, const DeviceState& gpu) {
    for (const auto& [name, value] : gpu.facts) {
      if (value == "[GPU is lost]" || value == "[Unknown Error]") {
        Add(host, subject, CheckStatus::kProblem, fmt::format("is lost, or does not report {}: {}", name, value),
            kDrainAdvice);
        return;
      }
    }
    const auto errors = NumberOf(FactOf(gpu, "ecc.errors.uncorrected.volatile.total"));
    if (errors.value_or(0) > 0) {
      Add(host, subject, CheckStatus::kProblem,
          fmt::format("{:.0f} uncorrected memory errors since the driver was loaded", *errors), kDrainAdvice);
    }
    if (FactOf(gpu, "remapped_rows.failure") == "Yes") {
      Add(host, subject, CheckStatus::kProblem, "has no spare rows of memory left for a broken one",
          "have the GPU replaced");
    }
    for (const char* name : {"remapped_rows.pending", "retired_pages.pending"}) {
      if (FactOf(gpu, name) != "Yes") continue;
      Add(host, subject, CheckStatus::kWarning,
          "a faulty part of its memory will be taken out of use at the next reset",
          "reset that GPU before the next job (nvidia-smi --gpu-reset)");
    }
  }

  void Add(const std::string& host, const std::string& subject, CheckStatus status, std::string finding,
           std::string advice) {
    is_any_bad_ = true;
    Check check = Line("gpu", subject, status, std::move(finding), std::move(advice));
    if (!host.empty()) check.hosts = {host};
    checks_->push_back(std::move(check));
  }

  std::vector<Check>* checks_;
  size_t count_ = 0;
  bool is_any_bad_ = false;
  std::set<std::string> models_;
  std::vector<Used> used_;
  std::optional<double> least_free_;
  std::optional<double> hottest_;
};

}  // namespace

void CheckGpus(const JobFacts& facts, std::vector<Check>* checks) {
  GpuChecks gpus(checks);
  std::vector<std::string> without;
  for (const NodeDevices& node : facts.devices) {
    bool has_any = false;
    for (const DeviceState& device : node.devices) {
      if (device.kind != "gpu") continue;
      has_any = true;
      gpus.Look(node.host, device);
    }
    if (!has_any) without.push_back(node.host);
  }
  gpus.Sum();
  if (gpus.count() > 0 && !without.empty()) {
    Check check = Line("gpu", "", CheckStatus::kWarning,
                       fmt::format("no GPU on {}, though other nodes have some", fmt::join(without, ", ")),
                       "check that the driver is loaded there and nvidia-smi is in lockstepd's PATH");
    check.hosts = without;
    checks->push_back(std::move(check));
  }
  if (gpus.count() > 0 || gpus.is_any_bad()) return;
  std::string reason = "not measured: no node has a rank whose state can be read";
  if (!without.empty()) {
    reason = fmt::format("no GPU on {}, or no nvidia-smi that lists them", fmt::join(without, ", "));
  } else if (!facts.no_verdict.empty()) {
    reason = "not measured: " + facts.no_verdict;
  }
  checks->push_back(Line("gpu", "", CheckStatus::kSkipped, std::move(reason)));
}

}  // namespace lockstep::doctor
