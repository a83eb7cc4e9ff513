#include "node/agent/gpu/gpu_metrics.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "node/agent/gpu/nvml_abi.h"

namespace lockstep::agent {
namespace {

// By GpuMetric.
struct MetricForm {
  GpuMetric metric;
  const char* name;
  const char* part;  ///< Label of GpuSample::part; null: none.
};
constexpr MetricForm kForms[kGpuMetricCount] = {
    {GpuMetric::kUtilization, "lockstep_gpu_utilization_ratio", nullptr},
    {GpuMetric::kSmActive, "lockstep_gpu_sm_active_ratio", nullptr},
    {GpuMetric::kTensorActive, "lockstep_gpu_tensor_active_ratio", nullptr},
    {GpuMetric::kDramActive, "lockstep_gpu_dram_active_ratio", nullptr},
    {GpuMetric::kMemoryUsed, "lockstep_gpu_memory_used_bytes", nullptr},
    {GpuMetric::kMemoryTotal, "lockstep_gpu_memory_total_bytes", nullptr},
    {GpuMetric::kMemoryReserved, "lockstep_gpu_memory_reserved_bytes", nullptr},
    {GpuMetric::kTemperature, "lockstep_gpu_temperature_celsius", "sensor"},
    {GpuMetric::kEnergy, "lockstep_gpu_energy_joules_total", nullptr},
    {GpuMetric::kPowerLimit, "lockstep_gpu_power_limit_watts", nullptr},
    {GpuMetric::kClock, "lockstep_gpu_clock_hertz", "domain"},
    {GpuMetric::kThrottle, "lockstep_gpu_throttle_seconds_total", "reason"},
    {GpuMetric::kEccErrors, "lockstep_gpu_ecc_errors_total", "error"},
    {GpuMetric::kRemappedRows, "lockstep_gpu_remapped_rows_total", "error"},
    {GpuMetric::kRowRemapPending, "lockstep_gpu_row_remap_pending", nullptr},
    {GpuMetric::kRowRemapFailure, "lockstep_gpu_row_remap_failure", nullptr},
    {GpuMetric::kPcieReceived, "lockstep_gpu_pcie_receive_bytes_total", nullptr},
    {GpuMetric::kPcieTransmitted, "lockstep_gpu_pcie_transmit_bytes_total", nullptr},
    {GpuMetric::kPcieReplays, "lockstep_gpu_pcie_replays_total", nullptr},
    {GpuMetric::kNvlinkReceived, "lockstep_gpu_nvlink_receive_bytes_total", nullptr},
    {GpuMetric::kNvlinkTransmitted, "lockstep_gpu_nvlink_transmit_bytes_total", nullptr},
    {GpuMetric::kNvlinkErrors, "lockstep_gpu_nvlink_errors_total", "error"},
};

constexpr bool AreInOrder() {
  for (size_t i = 0; i < kGpuMetricCount; ++i) {
    if (kForms[i].metric != static_cast<GpuMetric>(i)) return false;
  }
  return true;
}
static_assert(AreInOrder());

// Codes that mean hardware; each is there with 0 from the start, so that an alert sees the first.
constexpr const char* kHardwareXids[] = {"48", "62", "63",  "64",  "74",  "79", "92",
                                         "94", "95", "119", "120", "140", "143"};
constexpr size_t kMostXids = 48;  // Codes of a GPU; further ones are "other".

struct CountedReason {
  uint64_t bit;
  const char* name;
};
constexpr CountedReason kReasons[] = {{nvml::kReasonHwThermal, "hw_thermal"},
                                      {nvml::kReasonHwPowerBrake, "hw_power_brake"},
                                      {nvml::kReasonSwPowerCap, "power"},
                                      {nvml::kReasonSwThermal, "thermal"},
                                      {nvml::kReasonSyncBoost, "sync_boost"}};
// Between readings that are further apart than this nothing is known.
constexpr auto kLongestGap = std::chrono::seconds(10);

bool HasThrottle(const GpuDevice& device, std::string_view reason) {
  return std::any_of(device.samples.begin(), device.samples.end(), [&](const GpuSample& sample) {
    return sample.metric == GpuMetric::kThrottle && sample.part == reason;
  });
}

}  // namespace

const char* GpuMetricName(GpuMetric metric) { return kForms[static_cast<size_t>(metric)].name; }

const char* GpuMetricPart(GpuMetric metric) { return kForms[static_cast<size_t>(metric)].part; }

GpuMetrics::GpuMetrics(std::string host, std::optional<uint32_t> expected_count)
    : host_(std::move(host)), expected_count_(expected_count) {}

void GpuMetrics::Take(GpuReading reading, TimePoint now) {
  static_assert(std::size(kReasons) == kCountedReasons);
  for (const GpuDevice& device : reading.devices) {
    if (device.instance) continue;
    Counts& counts = counts_[device.gpu];
    for (const char* const code : kHardwareXids) counts.xids.try_emplace(code, 0);
    if (!device.reasons) {
      counts.reasons_at.reset();
      continue;
    }
    const auto since = counts.reasons_at ? now - *counts.reasons_at : std::chrono::steady_clock::duration(0);
    for (size_t i = 0; i < kCountedReasons && since <= kLongestGap; ++i) {
      if ((*device.reasons & kReasons[i].bit) == 0) continue;
      counts.reason_seconds[i] += std::chrono::duration<double>(since).count();
    }
    counts.reasons_at = now;
  }
  for (const auto& [gpu, code] : reading.xids) {
    auto& xids = counts_[gpu].xids;
    const std::string name = std::to_string(code);
    ++xids[xids.contains(name) || xids.size() < kMostXids ? name : "other"];
  }
  most_seen_ = std::max(most_seen_, reading.listed_count);
  reading_ = std::move(reading);
}

void GpuMetrics::Forget() { reading_.reset(); }

void GpuMetrics::AddDevice(const GpuDevice& device, MetricFamilies* out) const {
  MetricLabels labels = {{"host", host_}, {"gpu", std::to_string(device.gpu)}};
  if (device.instance) labels.emplace_back("gi", std::to_string(*device.instance));
  MetricLabels info = labels;
  for (const auto& [label, value] :
       {std::pair("uuid", &device.uuid), std::pair("model", &device.model),
        std::pair("driver_version", &reading_->driver_version), std::pair("pci_bus_id", &device.pci_bus_id),
        std::pair("mig_profile", &device.mig_profile)}) {
    if (!value->empty()) info.emplace_back(label, *value);
  }
  info.emplace_back("vendor", "nvidia");
  out->Add("lockstep_gpu_info", info, 1);
  for (const GpuSample& sample : device.samples) {
    const MetricForm& form = kForms[static_cast<size_t>(sample.metric)];
    MetricLabels own = labels;
    if (form.part != nullptr) own.emplace_back(form.part, sample.part);
    out->Add(form.name, std::move(own), sample.value);
  }
  const auto counts = counts_.find(device.gpu);
  if (device.instance || !device.reasons || counts == counts_.end()) return;
  for (size_t i = 0; i < kCountedReasons; ++i) {
    if (HasThrottle(device, kReasons[i].name)) continue;  // By the driver itself.
    MetricLabels own = labels;
    own.emplace_back("reason", kReasons[i].name);
    out->Add("lockstep_gpu_throttle_seconds_total", std::move(own), counts->second.reason_seconds[i]);
  }
}

std::vector<prometheus::MetricFamily> GpuMetrics::Collect(const Unresponsive& unresponsive) const {
  MetricFamilies out(GpuMetricSpecs());
  const MetricLabels host = {{"host", host_}};
  const uint32_t expected = expected_count_.value_or(most_seen_);
  if (expected > 0) out.Add("lockstep_gpus_expected", host, expected);
  std::set<std::string> answering;
  // A driver that is gone shows none of the GPUs that should be there; where none should be, there is nothing to say.
  if (reading_ && (reading_->state == GpuReading::State::kRead || expected > 0)) {
    const uint32_t lost_count = std::min(static_cast<uint32_t>(reading_->lost.size()), reading_->listed_count);
    out.Add("lockstep_gpus_visible", host, reading_->listed_count - lost_count);
    for (const GpuDevice& device : reading_->devices) {
      AddDevice(device, &out);
      if (!unresponsive.contains(device.gpu)) answering.insert(std::to_string(device.gpu));
    }
  }
  const auto add = [&](const std::string& gpu, double value) {
    out.Add("lockstep_gpu_unresponsive", {{"host", host_}, {"gpu", gpu}}, value);
  };
  for (const std::string& gpu : answering) add(gpu, 0);
  for (const auto& gpu : unresponsive) add(gpu ? std::to_string(*gpu) : "driver", 1);
  for (const auto& [gpu, counts] : counts_) {
    for (const auto& [code, count] : counts.xids) {
      out.Add("lockstep_gpu_xid_events_total", {{"host", host_}, {"gpu", std::to_string(gpu)}, {"xid", code}},
              static_cast<double>(count));
    }
  }
  return out.Take();
}

}  // namespace lockstep::agent
