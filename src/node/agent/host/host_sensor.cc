#include "node/agent/host/host_sensor.h"

#include <unistd.h>

#include <utility>

#include "node/agent/host/host_text.h"
#include "node/agent/sensors/small_file.h"

namespace lockstep::agent {

const MetricSpecs& HostMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_host_cpu_seconds_total", "counter", "host,mode",
       "Time of all processors: user, nice, system, idle, iowait, irq, softirq, steal."},
      {"lockstep_host_memory_total_bytes", "gauge", "host", "Memory of the node."},
      {"lockstep_host_memory_available_bytes", "gauge", "host", "Memory that programs can have without swapping."},
      {"lockstep_host_network_receive_bytes_total", "counter", "host,device",
       "Bytes that a network interface received."},
      {"lockstep_host_network_transmit_bytes_total", "counter", "host,device", "Bytes that a network interface sent."},
  };
  return specs;
}

Result<Reading> HostSensor::Look() {
  static const double kTicksPerSecond = static_cast<double>(::sysconf(_SC_CLK_TCK));
  SmallFiles files;
  MetricFamilies out(HostMetricSpecs());
  const MetricLabels host = {{"host", host_}};
  const auto with = [&](const char* label, std::string value) {
    MetricLabels labels = host;
    labels.emplace_back(label, std::move(value));
    return labels;
  };
  if (const auto stat = files.Text(proc_ + "/stat")) {
    for (const auto& [mode, ticks] : ParseCpuTicks(*stat)) {
      out.Add("lockstep_host_cpu_seconds_total", with("mode", mode), static_cast<double>(ticks) / kTicksPerSecond);
    }
  }
  if (const auto memory = files.Text(proc_ + "/meminfo")) {
    for (const auto& [line, metric] : {std::pair("MemTotal", "lockstep_host_memory_total_bytes"),
                                       std::pair("MemAvailable", "lockstep_host_memory_available_bytes")}) {
      if (const auto kibibytes = ValueOfLine(*memory, line)) {
        out.Add(metric, host, static_cast<double>(*kibibytes) * 1024);
      }
    }
  }
  if (const auto interfaces = files.Text(proc_ + "/net/dev")) {
    for (const InterfaceBytes& each : ParseInterfaces(*interfaces)) {
      out.Add("lockstep_host_network_receive_bytes_total", with("device", each.name),
              static_cast<double>(each.received));
      out.Add("lockstep_host_network_transmit_bytes_total", with("device", each.name),
              static_cast<double>(each.transmitted));
    }
  }
  return Reading{true, out.Take()};
}

}  // namespace lockstep::agent
