#include "node/agent/gpu/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <initializer_list>

namespace lockstep::agent {
namespace {

// The first of these names that the library has; names of one function, newest first, take the same arguments.
template <typename F>
void Find(void* library, std::initializer_list<const char*> names, F* function) {
  for (const char* const name : names) {
    if (void* const symbol = ::dlsym(library, name)) {
      *function = reinterpret_cast<F>(symbol);
      return;
    }
  }
}

}  // namespace

Result<NvmlLibrary> NvmlLibrary::Open(const std::string& path) {
  void* const opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return Error{ErrorCode::kNotFound, ::dlerror()};
  NvmlLibrary nvml;
  nvml.handle = std::shared_ptr<void>(opened, ::dlclose);
  Find(opened, {"nvmlInit_v2", "nvmlInit"}, &nvml.init);
  Find(opened, {"nvmlErrorString"}, &nvml.error_string);
  Find(opened, {"nvmlSystemGetDriverVersion"}, &nvml.driver_version);
  Find(opened, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, &nvml.device_count);
  Find(opened, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}, &nvml.device_by_index);
  Find(opened, {"nvmlDeviceGetIndex"}, &nvml.index_of);
  Find(opened, {"nvmlDeviceGetUUID"}, &nvml.uuid);
  Find(opened, {"nvmlDeviceGetName"}, &nvml.name);
  Find(opened, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"}, &nvml.pci_info);
  Find(opened, {"nvmlDeviceGetMemoryInfo_v2"}, &nvml.memory_v2);
  Find(opened, {"nvmlDeviceGetMemoryInfo"}, &nvml.memory);
  Find(opened, {"nvmlDeviceGetUtilizationRates"}, &nvml.utilization);
  Find(opened, {"nvmlDeviceGetTemperature"}, &nvml.temperature);
  Find(opened, {"nvmlDeviceGetTemperatureV"}, &nvml.temperature_v1);
  Find(opened, {"nvmlDeviceGetTotalEnergyConsumption"}, &nvml.energy_mj);
  Find(opened, {"nvmlDeviceGetEnforcedPowerLimit"}, &nvml.power_limit_mw);
  Find(opened, {"nvmlDeviceGetClockInfo"}, &nvml.clock_mhz);
  Find(opened, {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"},
       &nvml.clocks_event_reasons);
  Find(opened, {"nvmlDeviceGetViolationStatus"}, &nvml.violation);
  Find(opened, {"nvmlDeviceGetTotalEccErrors"}, &nvml.ecc_errors);
  Find(opened, {"nvmlDeviceGetRemappedRows"}, &nvml.remapped_rows);
  Find(opened, {"nvmlDeviceGetPcieReplayCounter"}, &nvml.pcie_replays);
  Find(opened, {"nvmlDeviceGetFieldValues"}, &nvml.field_values);
  Find(opened, {"nvmlDeviceGetMigMode"}, &nvml.mig_mode);
  Find(opened, {"nvmlDeviceGetMaxMigDeviceCount"}, &nvml.most_mig_devices);
  Find(opened, {"nvmlDeviceGetMigDeviceHandleByIndex"}, &nvml.mig_device_by_index);
  Find(opened, {"nvmlDeviceGetGpuInstanceId"}, &nvml.gpu_instance_id);
  Find(opened, {"nvmlEventSetCreate"}, &nvml.event_set_create);
  Find(opened, {"nvmlDeviceRegisterEvents"}, &nvml.register_events);
  Find(opened, {"nvmlEventSetWait_v2", "nvmlEventSetWait"}, &nvml.event_wait);
  Find(opened, {"nvmlGpmQueryDeviceSupport"}, &nvml.gpm_support);
  Find(opened, {"nvmlGpmSampleAlloc"}, &nvml.gpm_sample_alloc);
  Find(opened, {"nvmlGpmSampleFree"}, &nvml.gpm_sample_free);
  Find(opened, {"nvmlGpmSampleGet"}, &nvml.gpm_sample_get);
  Find(opened, {"nvmlGpmMigSampleGet"}, &nvml.gpm_mig_sample_get);
  Find(opened, {"nvmlGpmMetricsGet"}, &nvml.gpm_metrics_get);
  if (nvml.init == nullptr || nvml.device_count == nullptr || nvml.device_by_index == nullptr) {
    return Error{ErrorCode::kNotFound, "is not NVIDIA's management library: functions that list GPUs are missing",
                 path};
  }
  return nvml;
}

std::string NvmlLibrary::TextOf(nvml::Return result) const {
  if (error_string != nullptr) {
    if (const char* const text = error_string(result)) return text;
  }
  return fmt::format("NVML error {}", result);
}

}  // namespace lockstep::agent
