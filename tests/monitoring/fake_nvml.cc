// A stand-in for NVIDIA's management library, for tests: 8 GPUs or what the file FAKE_NVML_SCENARIO says, a line each.
//   gpus COUNT              | hang GPU, hang driver, hang init | crash GPU
//   lost GPU                | mig GPU (two instances: 1 and 2) | refuse GPU FUNCTION
//   forbid GPU (as a device cgroup does)
//   ecc GPU CORRECTED UNCORRECTED | rows GPU CORRECTED UNCORRECTED PENDING FAILED
//   reasons GPU BITS        | xid GPU CODE TIMES (all in all; events before a client registers are not its own)
//   init RESULT
// It is read again for each nvmlDeviceGetCount. With FAKE_NVML_OLD it has the names that a driver of 2014 had.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "node/agent/gpu/nvml_abi.h"

namespace nvml = lockstep::agent::nvml;

struct nvml::DeviceObject {
  unsigned gpu = 0;
  unsigned instance = 0;  // 0: the whole GPU.
};
struct nvml::EventSetObject {
  std::map<std::pair<unsigned, unsigned long long>, long> told;
  std::set<unsigned> gpus;
};
struct nvml::GpmSampleObject {
  long taken = 0;
  unsigned gpu = 0;
  unsigned instance = 0;
};

namespace {

constexpr unsigned kMostGpus = 16;
constexpr unsigned kInstances = 2;
constexpr unsigned long long kGiB = 1ULL << 30;

struct Gpu {
  bool hangs = false;
  bool crashes = false;
  bool is_lost = false;
  bool is_forbidden = false;
  bool has_mig = false;
  std::set<std::string> refused;
  unsigned long long ecc[2] = {};
  unsigned rows[4] = {};
  unsigned long long reasons = 0;
  std::map<unsigned long long, long> xids;
};

struct Scenario {
  unsigned gpu_count = 8;
  bool driver_hangs = false;
  bool init_hangs = false;
  int init = nvml::kSuccess;
  Gpu gpus[kMostGpus];
};

Scenario scenario;
nvml::DeviceObject devices[kMostGpus][kInstances + 1];
[[maybe_unused]] long samples_taken = 0;

void ReadScenario() {
  scenario = {};
  const char* const path = std::getenv("FAKE_NVML_SCENARIO");
  if (path == nullptr) return;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what;
    std::string which;
    words >> what >> which;
    const unsigned number = static_cast<unsigned>(std::strtoul(which.c_str(), nullptr, 10));
    Gpu& gpu = scenario.gpus[number % kMostGpus];
    if (what == "gpus") scenario.gpu_count = number;
    if (what == "init") scenario.init = static_cast<int>(number);
    if (what == "hang" && which == "driver") scenario.driver_hangs = true;
    if (what == "hang" && which == "init") scenario.init_hangs = true;
    if (what == "hang" && which != "driver" && which != "init") gpu.hangs = true;
    if (what == "crash") gpu.crashes = true;
    if (what == "lost") gpu.is_lost = true;
    if (what == "forbid") gpu.is_forbidden = true;
    if (what == "mig") gpu.has_mig = true;
    if (what == "refuse") {
      words >> which;
      gpu.refused.insert(which);
    }
    if (what == "ecc") words >> gpu.ecc[0] >> gpu.ecc[1];
    if (what == "rows") words >> gpu.rows[0] >> gpu.rows[1] >> gpu.rows[2] >> gpu.rows[3];
    if (what == "reasons") words >> gpu.reasons;
    if (what == "xid") {
      unsigned long long code = 0;
      words >> code >> which;
      gpu.xids[code] = std::strtol(which.c_str(), nullptr, 10);
    }
  }
}

// Says so beside the scenario.
[[noreturn]] void Hang() {
  if (const char* const path = std::getenv("FAKE_NVML_SCENARIO")) std::ofstream(std::string(path) + ".hangs").put('.');
  while (true) ::pause();
}

// What every call about a GPU begins with.
nvml::Return Enter(nvml::Device device, const char* function) {
  const Gpu& gpu = scenario.gpus[device->gpu];
  if (gpu.hangs) Hang();
  if (gpu.crashes) std::abort();
  if (gpu.is_lost) return nvml::kGpuIsLost;
  return gpu.refused.contains(function) ? nvml::kNotSupported : nvml::kSuccess;
}
#define ENTER(device) \
  if (const nvml::Return entered = Enter(device, __func__); entered != nvml::kSuccess) return entered

nvml::Return Init() {
  ReadScenario();
  if (scenario.init_hangs) Hang();
  for (unsigned gpu = 0; gpu < kMostGpus; ++gpu) {
    for (unsigned instance = 0; instance <= kInstances; ++instance) devices[gpu][instance] = {gpu, instance};
  }
  return scenario.init;
}

nvml::Return Count(unsigned* count) {
  ReadScenario();
  if (scenario.driver_hangs) Hang();
  *count = scenario.gpu_count;
  return nvml::kSuccess;
}

nvml::Return ByIndex(unsigned index, nvml::Device* device) {
  if (index >= scenario.gpu_count) return nvml::kInvalidArgument;
  if (scenario.gpus[index].hangs) Hang();
  if (scenario.gpus[index].is_forbidden) return nvml::kNoPermission;
  *device = &devices[index][0];
  return nvml::kSuccess;
}

nvml::Return Wait(nvml::EventSet set, nvml::EventData* data) {
  for (const unsigned gpu : set->gpus) {
    for (const auto& [code, times] : scenario.gpus[gpu].xids) {
      long& told = set->told[{gpu, code}];
      if (told >= times) continue;
      ++told;
      data->device = &devices[gpu][0];
      data->type = nvml::kEventXid;
      data->data = code;
      return nvml::kSuccess;
    }
  }
  return nvml::kTimeout;
}

}  // namespace

extern "C" {

const char* nvmlErrorString(int result) {
  return result == 18 ? "Driver/library version mismatch" : "as its number says";
}

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "999.1-fake");
  return nvml::kSuccess;
}

int nvmlDeviceGetUUID(nvml::Device device, char* text, unsigned size) {
  ENTER(device);
  std::snprintf(text, size, device->instance != 0 ? "MIG-fake-%u-%u" : "GPU-fake-%u", device->gpu, device->instance);
  return nvml::kSuccess;
}

int nvmlDeviceGetName(nvml::Device device, char* text, unsigned size) {
  ENTER(device);
  std::snprintf(text, size, device->instance != 0 ? "Fake H100 80GB MIG %ug.%u0gb" : "Fake H100 80GB", device->instance,
                device->instance);
  return nvml::kSuccess;
}

int nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* memory) {
  ENTER(device);
  *memory = {80 * kGiB, (79 - device->gpu) * kGiB, (device->gpu + 1) * kGiB};
  return nvml::kSuccess;
}

int nvmlDeviceGetUtilizationRates(nvml::Device device, nvml::Utilization* utilization) {
  ENTER(device);
  if (scenario.gpus[device->gpu].has_mig) return nvml::kNotSupported;
  *utilization = {10 * device->gpu + 5, 1};
  return nvml::kSuccess;
}

int nvmlDeviceGetTemperature(nvml::Device device, int, unsigned* celsius) {
  ENTER(device);
  *celsius = 40 + device->gpu;
  return nvml::kSuccess;
}

int nvmlDeviceGetEnforcedPowerLimit(nvml::Device device, unsigned* milliwatts) {
  ENTER(device);
  *milliwatts = 700'500;
  return nvml::kSuccess;
}

int nvmlDeviceGetClockInfo(nvml::Device device, int clock, unsigned* megahertz) {
  ENTER(device);
  constexpr unsigned kClocks[] = {1980, 1965, 2619, 1545};
  *megahertz = kClocks[clock];
  return nvml::kSuccess;
}

int nvmlDeviceGetTotalEccErrors(nvml::Device device, int kind, int, unsigned long long* count) {
  ENTER(device);
  *count = scenario.gpus[device->gpu].ecc[kind];
  return nvml::kSuccess;
}

int nvmlEventSetCreate(nvml::EventSet* set) {
  *set = new nvml::EventSetObject;
  return nvml::kSuccess;
}

int nvmlDeviceRegisterEvents(nvml::Device device, unsigned long long, nvml::EventSet set) {
  ENTER(device);
  set->gpus.insert(device->gpu);
  for (const auto& [code, times] : scenario.gpus[device->gpu].xids) set->told[{device->gpu, code}] = times;
  return nvml::kSuccess;
}

#ifdef FAKE_NVML_OLD
int nvmlInit() { return Init(); }
int nvmlDeviceGetCount(unsigned* count) { return Count(count); }
int nvmlDeviceGetHandleByIndex(unsigned index, nvml::Device* device) { return ByIndex(index, device); }
int nvmlDeviceGetPciInfo_v2(nvml::Device device, nvml::PciInfo* pci) {
  ENTER(device);
  std::snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "0000:%02X:00.0", device->gpu);
  return nvml::kSuccess;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(nvml::Device device, unsigned long long* reasons) {
  ENTER(device);
  *reasons = scenario.gpus[device->gpu].reasons;
  return nvml::kSuccess;
}
int nvmlEventSetWait(nvml::EventSet set, nvml::EventData* data, unsigned) { return Wait(set, data); }
#else
int nvmlInit_v2() { return Init(); }
int nvmlDeviceGetCount_v2(unsigned* count) { return Count(count); }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml::Device* device) { return ByIndex(index, device); }
int nvmlEventSetWait_v2(nvml::EventSet set, nvml::EventData* data, unsigned) { return Wait(set, data); }

int nvmlDeviceGetPciInfo_v3(nvml::Device device, nvml::PciInfo* pci) {
  ENTER(device);
  std::snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", device->gpu);
  return nvml::kSuccess;
}

int nvmlDeviceGetMemoryInfo_v2(nvml::Device device, nvml::MemoryV2* memory) {
  ENTER(device);
  if (memory->version != nvml::StructVersion<nvml::MemoryV2>(2)) return nvml::kInvalidArgument;
  if (device->instance != 0) {
    *memory = {memory->version, device->instance * 10 * kGiB, kGiB / 8, 9 * kGiB, device->instance * kGiB};
  } else {
    *memory = {memory->version, 80 * kGiB, kGiB / 2, (79 - device->gpu) * kGiB, (device->gpu + 1) * kGiB};
  }
  return nvml::kSuccess;
}

int nvmlDeviceGetTotalEnergyConsumption(nvml::Device device, unsigned long long* millijoules) {
  ENTER(device);
  *millijoules = 1'234'500ULL * (device->gpu + 1);
  return nvml::kSuccess;
}

int nvmlDeviceGetCurrentClocksEventReasons(nvml::Device device, unsigned long long* reasons) {
  ENTER(device);
  *reasons = scenario.gpus[device->gpu].reasons;
  return nvml::kSuccess;
}

int nvmlDeviceGetViolationStatus(nvml::Device device, int policy, nvml::ViolationTime* time) {
  ENTER(device);
  *time = {1, (policy + 1) * 500'000'000ULL * (device->gpu + 1)};
  return nvml::kSuccess;
}

int nvmlDeviceGetRemappedRows(nvml::Device device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  ENTER(device);
  const auto& rows = scenario.gpus[device->gpu].rows;
  *corrected = rows[0], *uncorrected = rows[1], *pending = rows[2], *failed = rows[3];
  return nvml::kSuccess;
}

int nvmlDeviceGetPcieReplayCounter(nvml::Device device, unsigned* count) {
  ENTER(device);
  *count = device->gpu;
  return nvml::kSuccess;
}

int nvmlDeviceGetFieldValues(nvml::Device device, int count, nvml::FieldValue* fields) {
  ENTER(device);
  const unsigned gpu = device->gpu;
  for (int i = 0; i < count; ++i) {
    nvml::FieldValue& field = fields[i];
    field.result = nvml::kSuccess;
    field.type = nvml::kTypeUnsignedLongLong;
    if (field.field == nvml::kFieldMemoryTemperature) {
      field.type = nvml::kTypeUnsigned;
      field.value.ull = 0xffffffff'00000000;  // The upper half is not part of the value.
      field.value.ui = 50 + gpu;
    } else if (field.field == nvml::kFieldNvlinkCount) {
      field.type = nvml::kTypeUnsigned;
      field.value.ui = 18;
    } else if (field.field == nvml::kFieldNvlinkDataTransmitted && field.scope == nvml::kScopeAllLinks) {
      field.value.ull = 1000 * (gpu + 1);
    } else if (field.field == nvml::kFieldNvlinkDataReceived && field.scope == nvml::kScopeAllLinks) {
      field.value.ull = 2000 * (gpu + 1);
    } else if (field.field == nvml::kFieldPcieTransmittedBytes) {
      field.value.ull = 3'000'000 * (gpu + 1);
    } else if (field.field == nvml::kFieldPcieReceivedBytes) {
      field.value.ull = 4'000'000 * (gpu + 1);
    } else if (field.field == 161 && field.scope < 18) {  // Replays of a link.
      field.value.ull = gpu == 1 ? field.scope : 0;
    } else if (field.field == 162 && field.scope < 18) {  // Recoveries of a link.
      field.value.ull = 0;
    } else {
      field.result = nvml::kNotSupported;
    }
  }
  return nvml::kSuccess;
}

int nvmlDeviceGetMigMode(nvml::Device device, unsigned* current, unsigned* pending) {
  ENTER(device);
  *current = *pending = scenario.gpus[device->gpu].has_mig ? 1 : 0;
  return nvml::kSuccess;
}

int nvmlDeviceGetMaxMigDeviceCount(nvml::Device device, unsigned* count) {
  ENTER(device);
  *count = 7;
  return nvml::kSuccess;
}

int nvmlDeviceGetMigDeviceHandleByIndex(nvml::Device device, unsigned index, nvml::Device* instance) {
  ENTER(device);
  // Instance 2 has two compute instances, and there is a gap before it.
  if (index != 0 && index != 2 && index != 3) return nvml::kNotFound;
  *instance = &devices[device->gpu][index == 0 ? 1 : 2];
  return nvml::kSuccess;
}

int nvmlDeviceGetGpuInstanceId(nvml::Device device, unsigned* id) {
  ENTER(device);
  if (device->instance == 0) return nvml::kNotSupported;
  *id = device->instance;
  return nvml::kSuccess;
}

int nvmlGpmQueryDeviceSupport(nvml::Device device, nvml::GpmSupport* support) {
  ENTER(device);
  if (support->version != nvml::kGpmVersion) return nvml::kInvalidArgument;
  support->is_supported = 1;
  return nvml::kSuccess;
}

int nvmlGpmSampleAlloc(nvml::GpmSample* sample) {
  *sample = new nvml::GpmSampleObject;
  return nvml::kSuccess;
}

int nvmlGpmSampleFree(nvml::GpmSample sample) {
  delete sample;
  return nvml::kSuccess;
}

int nvmlGpmSampleGet(nvml::Device device, nvml::GpmSample sample) {
  ENTER(device);
  if (scenario.gpus[device->gpu].has_mig) return nvml::kNotSupported;
  *sample = {++samples_taken, device->gpu, 0};
  return nvml::kSuccess;
}

int nvmlGpmMigSampleGet(nvml::Device device, unsigned instance, nvml::GpmSample sample) {
  ENTER(device);
  if (!scenario.gpus[device->gpu].has_mig || instance == 0 || instance > kInstances) return nvml::kInvalidArgument;
  *sample = {++samples_taken, device->gpu, instance};
  return nvml::kSuccess;
}

int nvmlGpmMetricsGet(nvml::GpmMetricsGet* get) {
  const nvml::GpmSampleObject& older = *get->older;
  const nvml::GpmSampleObject& newer = *get->newer;
  if (get->version != nvml::kGpmVersion || older.taken == 0 || newer.taken <= older.taken || older.gpu != newer.gpu ||
      older.instance != newer.instance) {
    return nvml::kInvalidArgument;
  }
  for (unsigned i = 0; i < get->count; ++i) {
    nvml::GpmMetric& metric = get->metrics[i];
    metric.result = nvml::kSuccess;
    metric.value = metric.id == nvml::kGpmSmActive       ? 50 + newer.gpu + 10 * newer.instance
                   : metric.id == nvml::kGpmTensorActive ? 25.5
                                                         : 12.25;
    if (metric.id == nvml::kGpmDramActive && newer.gpu == 6) metric.result = nvml::kNotSupported;
  }
  return nvml::kSuccess;
}
#endif

}  // extern "C"
