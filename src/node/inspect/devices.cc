#include "node/inspect/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/small_file.h"
#include "base/split.h"
#include "base/subprocess.h"
#include "base/trim.h"
#include "base/utf8.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/wire.h"
#include "node/inspect/worker.h"

namespace lockstep::inspect {

const std::string kGpuQuery =
    "index,name,pstate,utilization.gpu,memory.used,memory.total,temperature.gpu,"
    "ecc.errors.uncorrected.volatile.total,pci.bus_id";

const std::string kGpuHealthQuery = kGpuQuery +
                                    ",clocks_throttle_reasons.active,pcie.link.width.current,pcie.link.width.max,"
                                    "retired_pages.pending,remapped_rows.pending,remapped_rows.failure";

namespace {

using evidence::DeviceState;

constexpr size_t kMaxDevices = 256;
constexpr size_t kMaxValueBytes = 256;
constexpr std::string_view kBlanks = " \t\n\r";

std::string ReadValue(const std::string& path) {
  return Printable(Trimmed(ReadSmallFile(path, kMaxValueBytes).value_or(""), kBlanks));
}

std::vector<std::string> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end && names.size() < kMaxDevices;
       it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void AddCounters(const std::string& folder, std::initializer_list<const char*> names, DeviceState* device) {
  for (const char* name : names) {
    std::string value = ReadValue(fmt::format("{}/{}", folder, name));
    if (!value.empty()) device->facts.emplace_back(name, std::move(value));
  }
}

std::string PackDevice(const DeviceState& device) {
  WireWriter writer;
  writer.PutText(device.kind);
  writer.PutText(device.name);
  writer.PutText(device.state);
  for (const auto& [name, value] : device.facts) {
    writer.PutText(name);
    writer.PutText(value);
  }
  return writer.bytes();
}

DeviceState UnpackDevice(std::string_view message) {
  WireReader reader(message);
  DeviceState device = {.kind = reader.GetText(), .name = reader.GetText(), .state = reader.GetText(), .facts = {}};
  while (!reader.done()) {
    std::string name = reader.GetText();
    std::string value = reader.GetText();
    if (reader.ok()) device.facts.emplace_back(std::move(name), std::move(value));
  }
  return device;
}

void AskGpus(const WorkerPipe& pipe, int64_t deadline_ns) {
  const auto ask = [deadline_ns](const std::string& query) {
    return RunCommand({"nvidia-smi", "--query-gpu=" + query, "--format=csv,noheader"},
                      {.timeout_ns = std::max<int64_t>(deadline_ns - MonotonicNs() - kReportMarginNs, 1)});
  };
  const std::string* query = &kGpuHealthQuery;
  auto output = ask(*query);
  // A driver that does not know one of the names refuses them all.
  if (output && output->exit_status != 0 &&
      (output->output + output->error).find("not a valid field") != std::string::npos) {
    query = &kGpuQuery;
    output = ask(*query);
  }
  if (output && output->exit_status == 0) {
    for (const DeviceState& device : ParseGpuLines(output->output, *query)) pipe.Send(PackDevice(device));
  } else if (output || output.error().code != ErrorCode::kNotFound) {
    const bool late = !output && output.error().code == ErrorCode::kCancelled;
    const std::string words = output ? output->output + output->error : output.error().message;
    pipe.Send(PackDevice({.kind = "gpu",
                          .name = "nvidia-smi",
                          .state = late ? "no answer" : "error",
                          .facts = {{"message", Printable(Trimmed(words, kBlanks).substr(0, kMaxValueBytes))}}}));
  }
}

}  // namespace

std::vector<DeviceState> ParseGpuLines(std::string_view text, std::string_view query) {
  std::vector<DeviceState> devices;
  while (!text.empty() && devices.size() < kMaxDevices) {
    std::string_view line = TakePart(&text, '\n');
    std::vector<std::string> values;
    while (!line.empty()) {
      const std::string_view value = TakePart(&line, ',');
      values.push_back(Printable(Trimmed(value, kBlanks).substr(0, kMaxValueBytes)));
    }
    if (values.size() < 2) continue;
    DeviceState device = {
        .kind = "gpu", .name = fmt::format("{} {}", values[0], values[1]), .state = "ok", .facts = {}};
    std::string_view names = query;
    for (const std::string& value : values) {
      const std::string_view name = TakePart(&names, ',');
      if (name == "index" || name == "name" || value == "[N/A]") continue;
      if (value == "[Unknown Error]" || value == "[GPU is lost]") device.state = "error";
      if (name.starts_with("ecc.") && value != "0") device.state = "error";
      device.facts.emplace_back(name, value);
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<DeviceState> ReadNetworkDevices(const std::string& root) {
  std::vector<DeviceState> devices;
  for (const std::string& name : ListFolder(root + "/infiniband")) {
    for (const std::string& port : ListFolder(fmt::format("{}/infiniband/{}/ports", root, name))) {
      const std::string folder = fmt::format("{}/infiniband/{}/ports/{}", root, name, port);
      DeviceState device = {.kind = "infiniband", .name = fmt::format("{}:{}", name, port), .state = {}, .facts = {}};
      device.state = ReadValue(folder + "/state");  // "4: ACTIVE"
      if (const size_t colon = device.state.find(": "); colon != std::string::npos) device.state.erase(0, colon + 2);
      AddCounters(folder, {"phys_state", "rate", "link_layer"}, &device);
      AddCounters(folder + "/counters",
                  {"symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_discards",
                   "port_xmit_wait", "local_link_integrity_errors"},
                  &device);
      AddCounters(folder + "/hw_counters",
                  {"local_ack_timeout_err", "out_of_sequence", "packet_seq_err", "rnr_nak_retry_err", "np_cnp_sent",
                   "rp_cnp_handled"},
                  &device);
      devices.push_back(std::move(device));
    }
  }
  for (const std::string& name : ListFolder(root + "/net")) {
    const std::string folder = fmt::format("{}/net/{}", root, name);
    DeviceState device = {.kind = "ethernet", .name = name, .state = ReadValue(folder + "/operstate"), .facts = {}};
    if (device.state.empty()) continue;
    AddCounters(folder, {"speed", "mtu"}, &device);
    AddCounters(folder + "/statistics", {"rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "rx_bytes", "tx_bytes"},
                &device);
    devices.push_back(std::move(device));
  }
  if (devices.size() > kMaxDevices) devices.resize(kMaxDevices);
  return devices;
}

std::vector<DeviceState> ReadDevices(int64_t deadline_monotonic_ns) {
  // In a worker: a command that a driver keeps in the kernel cannot be waited for.
  const WorkerOutcome outcome = RunWorker(
      [&](const WorkerPipe& pipe) {
        for (const DeviceState& device : ReadNetworkDevices("/sys/class")) pipe.Send(PackDevice(device));
        AskGpus(pipe, deadline_monotonic_ns);
      },
      deadline_monotonic_ns);
  std::vector<DeviceState> devices;
  for (const std::string& message : outcome.messages) devices.push_back(UnpackDevice(message));
  if (outcome.out_of_time) devices.push_back({.kind = "gpu", .name = "nvidia-smi", .state = "no answer", .facts = {}});
  return devices;
}

}  // namespace lockstep::inspect
