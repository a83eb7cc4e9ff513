#include "node/agent/gpu/nvml_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <tuple>

namespace lockstep::agent {
namespace {

constexpr uint32_t kMostGpus = 64;
constexpr unsigned kMostInstances = 16;  // MIG makes seven.
constexpr unsigned kMostLinks = 36;
constexpr int kMostEvents = 256;  // A reading; the rest comes with the next.
constexpr auto kSlowEvery = std::chrono::seconds(5);

// Errors of NVLink, added up over a GPU's links. What a GPU has is of its generation: totals of all links up to Ampere,
// the data link's counters of a link on Hopper, the ports' on Blackwell.
struct LinkError {
  unsigned field;
  const char* name;
  bool is_total;
};
constexpr LinkError kLinkErrors[] = {
    {38, "crc_flit", true},
    {45, "crc_data", true},
    {52, "replay", true},
    {59, "recovery", true},
    {160, "ecc_data", true},
    {161, "replay", false},
    {162, "recovery", false},
    {163, "crc", false},
    {206, "malformed_packet", false},
    {207, "buffer_overrun", false},
    {208, "receive", false},
    {209, "receive_remote", false},
    {211, "local_link_integrity", false},
    {214, "link_recovery_failed", false},
    {219, "effective", false},
    {221, "symbol", false},
};

bool IsGone(nvml::Return result) {
  return result == nvml::kGpuIsLost || result == nvml::kGpuNotFound || result == nvml::kResetRequired;
}

template <size_t kSize>
std::string Text(const char (&text)[kSize]) {
  return std::string(text, ::strnlen(text, kSize));
}

double ValueOf(const nvml::FieldValue& field) {
  switch (field.type) {
    case nvml::kTypeDouble: return field.value.d;
    case nvml::kTypeUnsigned: return field.value.ui;
    case nvml::kTypeUnsignedLong: return static_cast<double>(field.value.ul);
    case nvml::kTypeUnsignedLongLong: return static_cast<double>(field.value.ull);
    case nvml::kTypeSignedLongLong: return static_cast<double>(field.value.sll);
    case nvml::kTypeSigned: return field.value.si;
    case nvml::kTypeUnsignedShort: return field.value.us;
    default: return std::nan("");
  }
}

}  // namespace

NvmlReader::NvmlReader(std::string library, Announce announce)
    : library_(std::move(library)), announce_(std::move(announce)) {}

// The library is not shut down: its process ends, and a call more is one more that may hang.
NvmlReader::~NvmlReader() = default;

template <typename F, typename... Arguments>
bool NvmlReader::Try(F function, Arguments... arguments) {
  if (function == nullptr || is_lost_) return false;
  const nvml::Return result = function(arguments...);
  is_lost_ = IsGone(result);
  return result == nvml::kSuccess;
}

bool NvmlReader::Start(GpuReading* reading) {
  if (!nvml_) {
    Result<NvmlLibrary> opened = NvmlLibrary::Open(library_);
    if (!opened) {
      reading->state = GpuReading::State::kAbsent;
      reading->message = opened.error().ToString();
      return false;
    }
    nvml_ = std::move(*opened);
  }
  if (has_started_) return true;
  const nvml::Return result = nvml_->init();
  if (result != nvml::kSuccess) {
    const bool has_none = result == nvml::kDriverNotLoaded || result == nvml::kNotFound;
    reading->state = has_none ? GpuReading::State::kAbsent : GpuReading::State::kFailed;
    reading->message = library_ + ": " + nvml_->TextOf(result);
    return false;
  }
  has_started_ = true;
  char version[80] = {};
  if (Try(nvml_->driver_version, &version[0], unsigned{sizeof(version)})) driver_version_ = Text(version);
  if (!Try(nvml_->event_set_create, &events_)) events_ = nullptr;
  return true;
}

GpuReading NvmlReader::Read(const std::vector<uint32_t>& skipped) {
  GpuReading reading;
  is_lost_ = false;
  announce_(std::nullopt);
  if (!Start(&reading)) return reading;
  unsigned count = 0;
  const nvml::Return listed = nvml_->device_count(&count);
  if (listed != nvml::kSuccess) {
    reading.state = GpuReading::State::kFailed;
    reading.message = "GPUs cannot be listed: " + nvml_->TextOf(listed);
    return reading;
  }
  reading.driver_version = driver_version_;
  const uint32_t listed_count = std::min(count, kMostGpus);
  reading.listed_count = listed_count;
  for (uint32_t gpu = 0; gpu < listed_count; ++gpu) {
    if (std::find(skipped.begin(), skipped.end(), gpu) != skipped.end()) continue;
    announce_(gpu);
    ReadGpu(gpu, &reading);
  }
  announce_(std::nullopt);
  ReadEvents(&reading);
  return reading;
}

void NvmlReader::ReadGpu(uint32_t gpu, GpuReading* reading) {
  is_lost_ = false;
  Known& known = known_[gpu];
  nvml::Device device = nullptr;
  const size_t before = reading->devices.size();
  const nvml::Return found = nvml_->device_by_index(gpu, &device);
  if (found == nvml::kNoPermission) {  // The driver counts those of others too, whose files a device cgroup withholds.
    --reading->listed_count;
    return;
  }
  bool is_there = found == nvml::kSuccess;
  if (is_there) {
    if (known.device != device) {  // The first time, or after the driver has found it anew.
      Free(&known);
      known = {};
      known.device = device;
      index_of_[device] = gpu;
      if (events_ != nullptr)
        Try(nvml_->register_events, device, static_cast<unsigned long long>(nvml::kEventXid), events_);
    }
    GpuDevice whole;
    whole.gpu = gpu;
    ReadIdentity(device, &whole);
    ReadState(device, &known, &whole);
    if (Clock::now() >= known.slow_again) {
      known.slow = ReadSlow(device, &known);
      known.slow_again = Clock::now() + kSlowEvery;
    }
    whole.samples.insert(whole.samples.end(), known.slow.begin(), known.slow.end());
    unsigned mig = 0;
    unsigned pending_mig = 0;
    if (Try(nvml_->mig_mode, device, &mig, &pending_mig) && mig != 0) {
      ReadInstances(device, &known, reading, whole);
    } else {
      ReadGpm(device, &known, std::nullopt, &whole);
    }
    reading->devices.push_back(std::move(whole));
    is_there = !is_lost_;
  }
  if (is_there) return;
  // What it said before it went is not how it is.
  reading->devices.resize(before);
  reading->lost.push_back(gpu);
  Free(&known);
  known.slow_again = {};
  is_lost_ = false;
}

void NvmlReader::ReadIdentity(nvml::Device device, GpuDevice* out) {
  char text[96] = {};
  if (Try(nvml_->uuid, device, &text[0], unsigned{sizeof(text)})) out->uuid = Text(text);
  if (Try(nvml_->name, device, &text[0], unsigned{sizeof(text)})) out->model = Text(text);
  nvml::PciInfo pci = {};
  if (Try(nvml_->pci_info, device, &pci)) {
    out->pci_bus_id = pci.bus_id[0] != '\0' ? Text(pci.bus_id) : Text(pci.bus_id_legacy);
  }
}

void NvmlReader::ReadMemory(nvml::Device device, GpuDevice* out) {
  const auto add = [out](GpuMetric metric, unsigned long long bytes) {
    out->samples.push_back({metric, "", static_cast<double>(bytes)});
  };
  nvml::MemoryV2 memory_v2 = {};
  memory_v2.version = nvml::StructVersion<nvml::MemoryV2>(2);
  nvml::Memory memory = {};
  if (Try(nvml_->memory_v2, device, &memory_v2)) {
    add(GpuMetric::kMemoryUsed, memory_v2.used);
    add(GpuMetric::kMemoryTotal, memory_v2.total);
    add(GpuMetric::kMemoryReserved, memory_v2.reserved);
  } else if (Try(nvml_->memory, device, &memory)) {
    add(GpuMetric::kMemoryUsed, memory.used);
    add(GpuMetric::kMemoryTotal, memory.total);
  }
}

void NvmlReader::ReadState(nvml::Device device, Known* known, GpuDevice* out) {
  const auto add = [out](GpuMetric metric, const char* part, double value) {
    out->samples.push_back({metric, part, value});
  };
  ReadMemory(device, out);
  nvml::Utilization utilization = {};
  if (Try(nvml_->utilization, device, &utilization)) add(GpuMetric::kUtilization, "", utilization.gpu / 100.0);
  unsigned number = 0;
  nvml::TemperatureV1 temperature = {nvml::StructVersion<nvml::TemperatureV1>(1), nvml::kTemperatureGpu, 0};
  if (Try(nvml_->temperature, device, nvml::kTemperatureGpu, &number)) {
    add(GpuMetric::kTemperature, "gpu", number);
  } else if (Try(nvml_->temperature_v1, device, &temperature)) {
    add(GpuMetric::kTemperature, "gpu", temperature.temperature);
  }
  unsigned long long wide = 0;
  if (Try(nvml_->energy_mj, device, &wide)) add(GpuMetric::kEnergy, "", static_cast<double>(wide) / 1e3);
  if (Try(nvml_->power_limit_mw, device, &number)) add(GpuMetric::kPowerLimit, "", number / 1e3);
  for (const auto& [clock, domain] : {std::pair(nvml::kClockGraphics, "graphics"), std::pair(nvml::kClockSm, "sm"),
                                      std::pair(nvml::kClockMemory, "memory"), std::pair(nvml::kClockVideo, "video")}) {
    if (Try(nvml_->clock_mhz, device, clock, &number)) add(GpuMetric::kClock, domain, number * 1e6);
  }
  if (Try(nvml_->clocks_event_reasons, device, &wide)) out->reasons = wide;
  for (const auto& [policy, reason] :
       {std::pair(nvml::kPolicyPower, "power"), std::pair(nvml::kPolicyThermal, "thermal"),
        std::pair(nvml::kPolicySyncBoost, "sync_boost"), std::pair(nvml::kPolicyBoardLimit, "board")}) {
    nvml::ViolationTime time = {};
    if (Try(nvml_->violation, device, policy, &time)) {
      add(GpuMetric::kThrottle, reason, static_cast<double>(time.violation_ns) / 1e9);
    }
  }
  // Not in one call: a driver may refuse all of it for one field that it does not know.
  const auto memory = Fields(device, known, {{nvml::kFieldMemoryTemperature, 0}});
  if (memory[0]) add(GpuMetric::kTemperature, "memory", *memory[0]);
  const auto nvlink = Fields(device, known,
                             {{nvml::kFieldNvlinkDataTransmitted, nvml::kScopeAllLinks},
                              {nvml::kFieldNvlinkDataReceived, nvml::kScopeAllLinks}});
  if (nvlink[0]) add(GpuMetric::kNvlinkTransmitted, "", *nvlink[0] * 1024);
  if (nvlink[1]) add(GpuMetric::kNvlinkReceived, "", *nvlink[1] * 1024);
  const auto pcie = Fields(device, known, {{nvml::kFieldPcieTransmittedBytes, 0}, {nvml::kFieldPcieReceivedBytes, 0}});
  if (pcie[0]) add(GpuMetric::kPcieTransmitted, "", *pcie[0]);
  if (pcie[1]) add(GpuMetric::kPcieReceived, "", *pcie[1]);
}

std::vector<GpuSample> NvmlReader::ReadSlow(nvml::Device device, Known* known) {
  std::vector<GpuSample> out;
  for (const auto& [kind, error] :
       {std::pair(nvml::kMemoryErrorCorrected, "corrected"), std::pair(nvml::kMemoryErrorUncorrected, "uncorrected")}) {
    unsigned long long count = 0;
    if (Try(nvml_->ecc_errors, device, kind, nvml::kEccVolatile, &count)) {
      out.push_back({GpuMetric::kEccErrors, error, static_cast<double>(count)});
    }
  }
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  if (Try(nvml_->remapped_rows, device, &corrected, &uncorrected, &pending, &failed)) {
    out.push_back({GpuMetric::kRemappedRows, "corrected", static_cast<double>(corrected)});
    out.push_back({GpuMetric::kRemappedRows, "uncorrected", static_cast<double>(uncorrected)});
    out.push_back({GpuMetric::kRowRemapPending, "", pending != 0 ? 1.0 : 0.0});
    out.push_back({GpuMetric::kRowRemapFailure, "", failed != 0 ? 1.0 : 0.0});
  }
  unsigned replays = 0;
  if (Try(nvml_->pcie_replays, device, &replays)) {
    out.push_back({GpuMetric::kPcieReplays, "", static_cast<double>(replays)});
  }
  const auto links = Fields(device, known, {{nvml::kFieldNvlinkCount, 0}})[0];
  if (links && *links > 0) {
    ReadNvlink(device, known, static_cast<unsigned>(std::min<double>(*links, kMostLinks)), &out);
  }
  return out;
}

std::optional<double> NvmlReader::SumOverLinks(nvml::Device device, Known* known, unsigned field, unsigned links) {
  std::vector<std::pair<unsigned, unsigned>> asked;
  for (unsigned link = 0; link < links; ++link) asked.emplace_back(field, link);
  std::optional<double> sum;
  for (const auto& value : Fields(device, known, asked)) {
    if (value) sum = sum.value_or(0) + *value;
  }
  return sum;
}

void NvmlReader::ReadNvlink(nvml::Device device, Known* known, unsigned links, std::vector<GpuSample>* out) {
  std::map<std::string, double> errors;
  for (const LinkError& error : kLinkErrors) {
    const auto sum = SumOverLinks(device, known, error.field, error.is_total ? 1 : links);
    if (sum) errors[error.name] += *sum;
  }
  for (const auto& [name, sum] : errors) out->push_back({GpuMetric::kNvlinkErrors, name, sum});
  // Where the GPU does not add its links up itself.
  for (const auto& [total, field, metric] :
       {std::tuple(nvml::kFieldNvlinkDataTransmitted, nvml::kFieldNvlinkTransmittedBytes,
                   GpuMetric::kNvlinkTransmitted),
        std::tuple(nvml::kFieldNvlinkDataReceived, nvml::kFieldNvlinkReceivedBytes, GpuMetric::kNvlinkReceived)}) {
    if (!known->refused_fields.contains(total)) continue;
    if (const auto sum = SumOverLinks(device, known, field, links)) out->push_back({metric, "", *sum});
  }
}

void NvmlReader::ReadInstances(nvml::Device device, Known* known, GpuReading* reading, const GpuDevice& whole) {
  unsigned most = 0;
  if (!Try(nvml_->most_mig_devices, device, &most)) return;
  std::set<uint32_t> seen;  // Several compute instances may share a GPU instance, and its memory.
  for (unsigned i = 0; i < std::min(most, kMostInstances); ++i) {
    nvml::Device instance = nullptr;
    unsigned id = 0;
    if (!Try(nvml_->mig_device_by_index, device, i, &instance) || !Try(nvml_->gpu_instance_id, instance, &id)) continue;
    if (!seen.insert(id).second) continue;
    GpuDevice out;
    out.gpu = whole.gpu;
    out.instance = id;
    out.pci_bus_id = whole.pci_bus_id;
    char text[96] = {};
    if (Try(nvml_->uuid, instance, &text[0], unsigned{sizeof(text)})) out.uuid = Text(text);
    if (Try(nvml_->name, instance, &text[0], unsigned{sizeof(text)})) {  // "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
      const std::string name = Text(text);
      const size_t at = name.rfind("MIG ");
      out.model = whole.model;
      if (at != std::string::npos) out.mig_profile = name.substr(at + 4);
    }
    ReadMemory(instance, &out);
    ReadGpm(device, known, id, &out);
    reading->devices.push_back(std::move(out));
  }
}

void NvmlReader::ReadGpm(nvml::Device device, Known* known, std::optional<uint32_t> instance, GpuDevice* out) {
  if (!known->has_gpm) {
    nvml::GpmSupport support = {nvml::kGpmVersion, 0};
    known->has_gpm = nvml_->gpm_sample_alloc != nullptr && nvml_->gpm_metrics_get != nullptr &&
                     Try(nvml_->gpm_support, device, &support) && support.is_supported != 0;
  }
  if (!*known->has_gpm) return;
  GpmPair& pair = known->gpm[instance ? static_cast<int64_t>(*instance) : -1];
  if (pair.newer == nullptr && !Try(nvml_->gpm_sample_alloc, &pair.newer)) return;
  if (pair.older == nullptr && !Try(nvml_->gpm_sample_alloc, &pair.older)) return;
  const bool is_read = instance ? Try(nvml_->gpm_mig_sample_get, device, unsigned{*instance}, pair.newer)
                                : Try(nvml_->gpm_sample_get, device, pair.newer);
  if (!is_read) {
    pair.has_older = false;
    return;
  }
  if (pair.has_older) {
    auto get = std::make_unique<nvml::GpmMetricsGet>();
    get->version = nvml::kGpmVersion;
    get->older = pair.older;
    get->newer = pair.newer;
    constexpr std::array kAsked = {std::pair(nvml::kGpmSmActive, GpuMetric::kSmActive),
                                   std::pair(nvml::kGpmTensorActive, GpuMetric::kTensorActive),
                                   std::pair(nvml::kGpmDramActive, GpuMetric::kDramActive)};
    for (const auto& [id, metric] : kAsked) get->metrics[get->count++].id = id;
    if (Try(nvml_->gpm_metrics_get, get.get())) {
      for (size_t i = 0; i < kAsked.size(); ++i) {
        const nvml::GpmMetric& got = get->metrics[i];
        if (got.result != nvml::kSuccess || !std::isfinite(got.value)) continue;
        out->samples.push_back({kAsked[i].second, "", got.value / 100});
      }
    }
  }
  std::swap(pair.older, pair.newer);
  pair.has_older = true;
}

void NvmlReader::ReadEvents(GpuReading* reading) {
  if (events_ == nullptr || nvml_->event_wait == nullptr) return;
  for (int i = 0; i < kMostEvents; ++i) {
    nvml::EventData event = {};
    if (nvml_->event_wait(events_, &event, 0) != nvml::kSuccess) return;
    if (event.type != nvml::kEventXid) continue;
    const auto known = index_of_.find(event.device);  // Also of a GPU that is gone: why is what its event says.
    unsigned gpu = 0;
    if (known != index_of_.end()) {
      reading->xids.emplace_back(known->second, event.data);
    } else if (nvml_->index_of != nullptr && nvml_->index_of(event.device, &gpu) == nvml::kSuccess) {
      reading->xids.emplace_back(gpu, event.data);
    }
  }
}

std::vector<std::optional<double>> NvmlReader::Fields(nvml::Device device, Known* known,
                                                      const std::vector<std::pair<unsigned, unsigned>>& fields) {
  std::vector<std::optional<double>> values(fields.size());
  std::vector<nvml::FieldValue> asked;
  std::vector<size_t> places;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (known->refused_fields.contains(fields[i].first)) continue;
    nvml::FieldValue field = {};
    field.field = fields[i].first;
    field.scope = fields[i].second;
    field.result = nvml::kUnknown;  // Should the library leave it as it is.
    asked.push_back(field);
    places.push_back(i);
  }
  if (asked.empty()) return values;
  const bool is_answered = Try(nvml_->field_values, device, static_cast<int>(asked.size()), asked.data());
  std::set<unsigned> has;
  for (size_t i = 0; i < asked.size() && is_answered; ++i) {
    const double value = ValueOf(asked[i]);
    if (asked[i].result != nvml::kSuccess || !std::isfinite(value)) continue;
    values[places[i]] = value;
    has.insert(asked[i].field);
  }
  for (const nvml::FieldValue& field : asked) {
    const bool is_final = !is_answered || field.result == nvml::kNotSupported || field.result == nvml::kInvalidArgument;
    if (is_final && !is_lost_ && !has.contains(field.field)) known->refused_fields.insert(field.field);
  }
  return values;
}

void NvmlReader::Free(Known* known) {
  for (auto& [instance, pair] : known->gpm) {
    for (const nvml::GpmSample sample : {pair.older, pair.newer}) {
      if (sample != nullptr && nvml_->gpm_sample_free != nullptr) nvml_->gpm_sample_free(sample);
    }
  }
  known->gpm.clear();
}

}  // namespace lockstep::agent
