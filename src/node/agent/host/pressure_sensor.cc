#include "node/agent/host/pressure_sensor.h"

#include <utility>

#include "node/agent/host/host_text.h"
#include "node/agent/sensors/small_file.h"

namespace lockstep::agent {
namespace {

constexpr const char* kResources[] = {"cpu", "memory", "io"};

}  // namespace

const MetricSpecs& PressureMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_host_pressure_seconds_total", "counter", "host,resource,kind",
       "Time in which some of the node's tasks, or all that were not idle (full), waited for cpu, memory or io."},
  };
  return specs;
}

Result<Reading> PressureSensor::Look() {
  SmallFiles files;
  MetricFamilies out(PressureMetricSpecs());
  bool is_present = false;
  for (const char* const resource : kResources) {
    const auto text = files.Text(proc_ + "/pressure/" + resource);
    if (!text) continue;
    for (const auto& [kind, total_us] : ParsePressure(*text)) {
      is_present = true;
      out.Add("lockstep_host_pressure_seconds_total", {{"host", host_}, {"resource", resource}, {"kind", kind}},
              static_cast<double>(total_us) / 1e6);
    }
  }
  return Reading{is_present, out.Take()};
}

}  // namespace lockstep::agent
