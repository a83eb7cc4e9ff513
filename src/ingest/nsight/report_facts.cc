#include "ingest/nsight/report_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text_scan.h"
#include "base/utf8.h"

namespace lockstep::ingest::nsight {
namespace {

std::optional<int64_t> Number(std::string_view text) { return WholeNumber(text); }

std::string Short(std::string_view text, size_t most) {
  std::string line(text.substr(0, most));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return Printable(line);
}

/// "NAME="value"" of META_DATA_CAPTURE, when it is the variable that is asked for.
std::optional<std::string> ValueOf(std::string_view row, std::string_view name) {
  if (!row.starts_with(name) || row.size() <= name.size() || row[name.size()] != '=') return std::nullopt;
  std::string_view value = row.substr(name.size() + 1);
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
  return std::string(value);
}

/// The variables of the launched process. Texts are kept while the rank is looked for, and nowhere after that.
struct LaunchTexts {
  std::vector<std::string> rows;
  std::string joined;

  std::optional<std::string> Find(std::string_view name) const {
    for (const std::string& row : rows) {
      if (auto value = ValueOf(row, name)) return value;
    }
    return FindVariable(joined, name);
  }
};

struct Gpu {
  std::string name;
  std::optional<int64_t> memory_bytes;
  std::optional<int32_t> multiprocessors;
  std::optional<int64_t> cuda_ordinal;
  std::optional<int64_t> sampled;  ///< As hardware metrics call it.
};

model::Device DeviceOf(const Gpu& gpu, int64_t ordinal) {
  model::Device device;
  device.ordinal = {static_cast<int32_t>(ordinal)};
  device.name = gpu.name;
  device.memory_bytes = gpu.memory_bytes;
  device.multiprocessor_count = gpu.multiprocessors;
  return device;
}

void ReadDevices(const Database& database, ReportFacts* facts) {
  constexpr size_t kMaxDevices = 4096;
  std::map<int64_t, Gpu> gpus;
  TableScan rows(database, "TARGET_INFO_GPU", {"id", "name", "totalMemory", "smCount", "cuDevice", "pwGpuId"});
  rows.ForEach([&] {
    if (rows.row_count() >= kMaxDevices) rows.Stop();
    if (rows.IsNull(0)) return;
    Gpu gpu;
    gpu.name = Short(rows.Text(1), 200);
    gpu.memory_bytes = rows.MaybeInt(2);
    if (const auto count = rows.MaybeInt(3); count && *count > 0 && *count <= INT32_MAX) {
      gpu.multiprocessors = static_cast<int32_t>(*count);
    }
    gpu.cuda_ordinal = rows.MaybeInt(4);
    gpu.sampled = rows.MaybeInt(5);
    gpus.try_emplace(rows.Int(0), std::move(gpu));
  });
  for (const auto& [id, gpu] : gpus) {
    const int64_t ordinal = gpu.cuda_ordinal.value_or(id);
    if (ordinal < 0 || ordinal > INT32_MAX) continue;
    facts->devices.push_back(DeviceOf(gpu, ordinal));
    facts->sampled.try_emplace(static_cast<int32_t>(ordinal), gpu.sampled.value_or(id));
  }
  TableScan numbers(database, "TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"});
  numbers.ForEach([&] {
    if (numbers.row_count() >= kMaxDevices) numbers.Stop();
    const auto gpu = gpus.find(numbers.Int(0));
    const int64_t ordinal = numbers.Int(1);
    if (gpu == gpus.end() || numbers.IsNull(2) || ordinal < 0 || ordinal > INT32_MAX) return;
    facts->by_pid[numbers.Int(2)].push_back(DeviceOf(gpu->second, ordinal));
    facts->sampled_by_pid.try_emplace({numbers.Int(2), static_cast<int32_t>(ordinal)},
                                      gpu->second.sampled.value_or(gpu->first));
  });
}

/// Troubles that nsys itself had, worst first in the table's own order.
void ReadDiagnostics(const Database& database, ReportNotes* notes) {
  constexpr int64_t kWarning = 2;
  constexpr int kShown = 5;
  TableScan rows(database, "DIAGNOSTIC_EVENT", {"severity", "text"});
  uint64_t count = 0;
  std::string texts;
  rows.ForEach([&] {
    if (rows.IsNull(0) || rows.Int(0) < kWarning) return;
    if (count++ < kShown) texts += fmt::format("{}{}", texts.empty() ? "" : " | ", Short(rows.Text(1), 200));
  });
  if (count == 0) return;
  notes->Add("nsys_diagnostics", model::Severity::kWarning,
             fmt::format("nsys reported problems while it recorded: {}{}", texts, count > kShown ? " | ..." : ""),
             "the data that it names may be missing from the report", count);
}

}  // namespace

int64_t ReportFacts::SampledGpuOf(int64_t pid, int32_t ordinal) const {
  const auto own = sampled_by_pid.find({pid, ordinal});
  if (own != sampled_by_pid.end()) return own->second;
  const auto of_machine = sampled.find(ordinal);
  return of_machine == sampled.end() ? ordinal : of_machine->second;
}

int32_t ReportFacts::OrdinalOf(int64_t sampled_gpu) const {
  for (const auto& [ordinal, gpu] : sampled) {
    if (gpu == sampled_gpu) return ordinal;
  }
  return static_cast<int32_t>(sampled_gpu);
}

ReportFacts ReadFacts(const Database& database, ReportNotes* notes) {
  ReportFacts facts;
  std::optional<int64_t> shift;
  bool normalised = false;
  for (const char* table : {"EXPORT_META_DATA", "META_DATA_EXPORT"}) {
    TableScan rows(database, table, {"name", "value"});
    rows.ForEach([&] {
      const std::string_view name = rows.Text(0);
      if (name == "EXPORT_PRODUCT_VERSION") facts.product_version = Short(rows.Text(1), 64);
      if (name == "EXPORT_SCHEMA_VERSION") facts.schema_version = Short(rows.Text(1), 64);
      if (name == "EXPORT_CONFIG_TIME_SHIFT") shift = Number(rows.Text(1));
      if (name == "EXPORT_PARAM_TIME_NORMALIZE") normalised = rows.Text(1) == "true" || rows.Text(1) == "1";
    });
  }
  LaunchTexts launch;
  TableScan capture(database, "META_DATA_CAPTURE", {"name", "value"});
  capture.ForEach([&] {
    const std::string_view name = capture.Text(0);
    const std::string_view value = capture.Text(1);
    if (name == "PROCESS_0:ENVIRONMENT_VARIABLE") launch.rows.emplace_back(value);
    if (name == "CAPTURE_EVENT_TYPE" && value == "Cuda") facts.asked_for_cuda = true;
    if (name == "CUDA_GRAPH_TRACE_OPTIONS:MODE" && value == "Graph") facts.asked_for_kernels_in_graphs = false;
  });
  TableScan system(database, "TARGET_INFO_SYSTEM_ENV", {"name", "value"});
  system.ForEach([&] {
    const std::string_view name = system.Text(0);
    if (name == "Hostname") facts.host = Short(system.Text(1), 255);
    if (name == "DeviceEnvironment") launch.joined = system.Text(1);
  });
  facts.launch = ReadLaunch([&launch](std::string_view name) { return launch.Find(name); });
  TableScan start(database, "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
  start.ForEach([&] {
    start.Stop();
    if (start.IsNull(0)) return;
    const int64_t utc_ns = start.Int(0);
    // What was added to every time at export is there already.
    const int64_t added_ns = shift ? *shift : normalised ? utc_ns : 0;
    if (utc_ns > 0 && utc_ns < INT64_MAX / 4 && added_ns > -INT64_MAX / 4 && added_ns < INT64_MAX / 4) {
      facts.base_ns = utc_ns - added_ns;
    }
  });
  ReadDevices(database, &facts);
  ReadDiagnostics(database, notes);
  return facts;
}

}  // namespace lockstep::ingest::nsight
