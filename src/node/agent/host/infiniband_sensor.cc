#include "node/agent/host/infiniband_sensor.h"

#include <utility>

#include "base/utf8.h"
#include "node/agent/host/host_text.h"
#include "node/agent/sensors/small_file.h"

namespace lockstep::agent {
namespace {

constexpr size_t kMostDevices = 64;
constexpr size_t kMostPorts = 8;
constexpr double kWordBytes = 4;  // Data counters count in words of 32 bits, whatever the link.

// What counts as an error of a port. Some of these are of 32 bits or stop at their highest value: Prometheus takes a
// decrease for a new start.
constexpr std::pair<const char*, const char*> kErrors[] = {
    {"counters/symbol_error", "symbol"},
    {"counters/link_error_recovery", "link_error_recovery"},
    {"counters/link_downed", "link_downed"},
    {"counters/port_rcv_errors", "receive"},
    {"counters/port_rcv_remote_physical_errors", "receive_remote_physical"},
    {"counters/port_rcv_switch_relay_errors", "receive_switch_relay"},
    {"counters/port_rcv_constraint_errors", "receive_constraint"},
    {"counters/port_xmit_discards", "transmit_discards"},
    {"counters/port_xmit_constraint_errors", "transmit_constraint"},
    {"counters/local_link_integrity_errors", "local_link_integrity"},
    {"counters/excessive_buffer_overrun_errors", "excessive_buffer_overrun"},
    {"counters/VL15_dropped", "vl15_dropped"},
    {"hw_counters/out_of_sequence", "out_of_sequence"},
    {"hw_counters/packet_seq_err", "packet_sequence"},
    {"hw_counters/local_ack_timeout_err", "local_ack_timeout"},
    {"hw_counters/rnr_nak_retry_err", "rnr_nak_retry"},
    {"hw_counters/out_of_buffer", "out_of_buffer"},
};

}  // namespace

const MetricSpecs& InfinibandMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_ib_port_active", "gauge", "host,device,port", "1: the port's link is up."},
      {"lockstep_ib_port_rate_bytes_per_second", "gauge", "host,device,port", "What the link can carry each way."},
      {"lockstep_ib_port_receive_bytes_total", "counter", "host,device,port", "Bytes that the port received."},
      {"lockstep_ib_port_transmit_bytes_total", "counter", "host,device,port", "Bytes that the port sent."},
      {"lockstep_ib_port_transmit_wait_total", "counter", "host,device,port",
       "Ticks in which the port had data to send and could not."},
      {"lockstep_ib_port_errors_total", "counter", "host,device,port,error",
       "Errors of the port, by the name of the kernel's counter."},
      {"lockstep_ib_skipped_files", "gauge", "host",
       "Files of ports that are there and gave no number at the last look."},
  };
  return specs;
}

Result<Reading> InfinibandSensor::Look() {
  MetricFamilies out(InfinibandMetricSpecs());
  SmallFiles files;
  bool is_present = false;
  const std::string devices = sysfs_ + "/class/infiniband";
  for (const std::string& device : NamesIn(devices, kMostDevices)) {
    const std::string ports = devices + "/" + device + "/ports";
    for (const std::string& port : NamesIn(ports, kMostPorts)) {
      is_present = true;
      const std::string folder = ports + "/" + port + "/";
      const MetricLabels labels = {{"host", host_}, {"device", Printable(device)}, {"port", Printable(port)}};
      if (const auto state = files.Text(folder + "state")) {
        out.Add("lockstep_ib_port_active", labels, IsActivePort(*state) ? 1 : 0);
      }
      if (const auto rate = files.Text(folder + "rate")) {
        if (const auto bytes = ParsePortRate(*rate)) out.Add("lockstep_ib_port_rate_bytes_per_second", labels, *bytes);
      }
      if (const auto words = files.Number(folder + "counters/port_rcv_data")) {
        out.Add("lockstep_ib_port_receive_bytes_total", labels, static_cast<double>(*words) * kWordBytes);
      }
      if (const auto words = files.Number(folder + "counters/port_xmit_data")) {
        out.Add("lockstep_ib_port_transmit_bytes_total", labels, static_cast<double>(*words) * kWordBytes);
      }
      if (const auto ticks = files.Number(folder + "counters/port_xmit_wait")) {
        out.Add("lockstep_ib_port_transmit_wait_total", labels, static_cast<double>(*ticks));
      }
      for (const auto& [file, error] : kErrors) {
        const auto count = files.Number(folder + file);
        if (!count) continue;
        MetricLabels with_error = labels;
        with_error.emplace_back("error", error);
        out.Add("lockstep_ib_port_errors_total", std::move(with_error), static_cast<double>(*count));
      }
    }
  }
  if (is_present) out.Add("lockstep_ib_skipped_files", {{"host", host_}}, static_cast<double>(files.skipped_count()));
  return Reading{is_present, out.Take()};
}

}  // namespace lockstep::agent
