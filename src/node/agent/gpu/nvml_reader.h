#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "node/agent/gpu/gpu_reading.h"
#include "node/agent/gpu/nvml_library.h"

namespace lockstep::agent {

/// Reads all GPUs through NVIDIA's library. Every call may hang, so this lives in a process of its own (gpu_helper.h).
/// No counter session is ever held: GPM's samples need none. Not thread-safe.
class NvmlReader {
 public:
  /// Called before calls about one GPU, or (nullopt) about the driver.
  using Announce = std::function<void(std::optional<uint32_t> gpu)>;
  NvmlReader(std::string library, Announce announce);
  ~NvmlReader();
  NvmlReader(const NvmlReader&) = delete;
  NvmlReader& operator=(const NvmlReader&) = delete;

  /// Of GPUs in `skipped` nothing is asked. Loads the library and starts it at the first call, and at each until that
  /// succeeds.
  GpuReading Read(const std::vector<uint32_t>& skipped);

 private:
  using Clock = std::chrono::steady_clock;
  struct GpmPair {
    nvml::GpmSample older = nullptr;
    nvml::GpmSample newer = nullptr;
    bool has_older = false;
  };
  /// What is remembered of a GPU between readings.
  struct Known {
    nvml::Device device = nullptr;
    std::set<unsigned> refused_fields;  ///< That it does not have: each costs a call of the driver.
    Clock::time_point slow_again = {};  ///< When what seldom changes is asked again.
    std::vector<GpuSample> slow;        ///< What it was.
    std::optional<bool> has_gpm;
    std::map<int64_t, GpmPair> gpm;  ///< By MIG instance; -1: the whole GPU.
  };

  bool Start(GpuReading* reading);
  /// False: it cannot be had now.
  template <typename F, typename... Arguments>
  bool Try(F function, Arguments... arguments);
  void ReadGpu(uint32_t gpu, GpuReading* reading);
  void ReadIdentity(nvml::Device device, GpuDevice* out);
  void ReadMemory(nvml::Device device, GpuDevice* out);
  void ReadState(nvml::Device device, Known* known, GpuDevice* out);
  std::vector<GpuSample> ReadSlow(nvml::Device device, Known* known);
  void ReadNvlink(nvml::Device device, Known* known, unsigned links, std::vector<GpuSample>* out);
  std::optional<double> SumOverLinks(nvml::Device device, Known* known, unsigned field, unsigned links);
  void ReadInstances(nvml::Device device, Known* known, GpuReading* reading, const GpuDevice& whole);
  void ReadGpm(nvml::Device device, Known* known, std::optional<uint32_t> instance, GpuDevice* out);
  void ReadEvents(GpuReading* reading);
  /// Values of fields with scopes; nullopt: the GPU does not have it.
  std::vector<std::optional<double>> Fields(nvml::Device device, Known* known,
                                            const std::vector<std::pair<unsigned, unsigned>>& fields);
  void Free(Known* known);

  const std::string library_;
  const Announce announce_;
  std::optional<NvmlLibrary> nvml_;
  std::string driver_version_;
  bool has_started_ = false;
  bool is_lost_ = false;  ///< The GPU that is being read.
  nvml::EventSet events_ = nullptr;
  std::map<uint32_t, Known> known_;            ///< By index.
  std::map<nvml::Device, uint32_t> index_of_;  ///< Also of GPUs that are gone.
};

}  // namespace lockstep::agent
