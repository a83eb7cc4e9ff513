#include "node/agent/gpu/amd_sensor.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/utf8.h"
#include "node/agent/gpu/gpu_metrics.h"
#include "node/agent/sensors/small_file.h"

namespace lockstep::agent {
namespace {

constexpr size_t kMostEntries = 512;  // A card has an entry for each connector besides its own.
constexpr const char* kAmdVendor = "0x1002";
constexpr int kMostInputs = 8;

// "card0", not "card0-DP-1".
bool IsCard(std::string_view name) {
  if (!name.starts_with("card") || name.size() == 4) return false;
  return std::all_of(name.begin() + 4, name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Where the card's device leads to is named by its place on the bus.
std::string BusIdOf(const std::string& device) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(device, error);
  return error ? "" : Printable(path.filename().string().substr(0, 32));
}

// One of the driver's inputs, temp1 and so on, under the name that its label gives it here.
std::string NameOf(const std::optional<std::string>& label, const std::string& otherwise) {
  if (!label || label->empty()) return otherwise;
  if (*label == "edge") return "gpu";
  if (*label == "mem" || *label == "mclk") return "memory";
  if (*label == "sclk") return "graphics";
  return Printable(label->substr(0, 32));
}

void AddInputs(const std::string& folder, const char* input, const char* metric, const char* label, double unit,
               const MetricLabels& labels, SmallFiles* files, MetricFamilies* out) {
  std::vector<std::string> names;
  for (int i = 1; i <= kMostInputs; ++i) {
    const std::string path = folder + "/" + input + std::to_string(i);
    const auto value = files->Number(path + "_input");
    if (!value) continue;
    const std::string name = NameOf(files->Text(path + "_label"), input + std::to_string(i));
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    names.push_back(name);
    MetricLabels own = labels;
    own.emplace_back(label, name);
    out->Add(metric, std::move(own), static_cast<double>(*value) * unit);
  }
}

}  // namespace

Result<Reading> AmdSensor::Look() {
  MetricFamilies out(GpuMetricSpecs());
  SmallFiles files;
  bool is_present = false;
  const std::string cards = sysfs_ + "/class/drm";
  for (const std::string& card : NamesIn(cards, kMostEntries)) {
    const std::string device = cards + "/" + card + "/device";
    if (!IsCard(card) || files.Text(device + "/vendor") != kAmdVendor) continue;
    is_present = true;
    const MetricLabels labels = {{"host", host_}, {"gpu", card}};
    MetricLabels info = labels;
    for (const auto& [label, file] : {std::pair("uuid", "/unique_id"), std::pair("model", "/product_name")}) {
      const auto text = files.Text(device + file);
      if (text && !text->empty()) info.emplace_back(label, Printable(text->substr(0, 96)));
    }
    if (const std::string bus_id = BusIdOf(device); !bus_id.empty()) info.emplace_back("pci_bus_id", bus_id);
    info.emplace_back("vendor", "amd");
    out.Add("lockstep_gpu_info", info, 1);
    const auto add = [&](GpuMetric metric, const std::string& file, double unit) {
      if (const auto value = files.Number(device + file)) {
        out.Add(GpuMetricName(metric), labels, static_cast<double>(*value) * unit);
      }
    };
    add(GpuMetric::kUtilization, "/gpu_busy_percent", 0.01);
    add(GpuMetric::kMemoryUsed, "/mem_info_vram_used", 1);
    add(GpuMetric::kMemoryTotal, "/mem_info_vram_total", 1);
    const std::vector<std::string> monitors = NamesIn(device + "/hwmon", 1);
    if (monitors.empty()) continue;
    const std::string folder = device + "/hwmon/" + monitors[0];
    add(GpuMetric::kPowerLimit, "/hwmon/" + monitors[0] + "/power1_cap", 1e-6);
    AddInputs(folder, "temp", GpuMetricName(GpuMetric::kTemperature), "sensor", 1e-3, labels, &files, &out);
    AddInputs(folder, "freq", GpuMetricName(GpuMetric::kClock), "domain", 1, labels, &files, &out);
  }
  return Reading{is_present, out.Take()};
}

}  // namespace lockstep::agent
