#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::agent {

/// What is measured of a GPU or of a MIG instance, in the metric's own unit; GpuMetricName() has their names.
enum class GpuMetric : uint8_t {
  kUtilization,
  kSmActive,
  kTensorActive,
  kDramActive,
  kMemoryUsed,
  kMemoryTotal,
  kMemoryReserved,
  kTemperature,
  kEnergy,
  kPowerLimit,
  kClock,
  kThrottle,
  kEccErrors,
  kRemappedRows,
  kRowRemapPending,
  kRowRemapFailure,
  kPcieReceived,
  kPcieTransmitted,
  kPcieReplays,
  kNvlinkReceived,
  kNvlinkTransmitted,
  kNvlinkErrors,
};
inline constexpr size_t kGpuMetricCount = 22;

struct GpuSample {
  GpuMetric metric = GpuMetric::kUtilization;
  std::string part;  ///< Value of the metric's further label: "memory", "corrected"; empty where it has none.
  double value = 0;
};

/// A GPU that answers, or one of its MIG instances.
struct GpuDevice {
  uint32_t gpu = 0;                       ///< The driver's index.
  std::optional<uint32_t> instance = {};  ///< MIG's GPU instance.
  std::string uuid = {};
  std::string model = {};
  std::string pci_bus_id = {};
  std::string mig_profile = {};          ///< "1g.10gb"
  std::optional<uint64_t> reasons = {};  ///< Clocks event reasons of this moment, as NVML's bits.
  std::vector<GpuSample> samples = {};   ///< What was not measured is absent.
};

/// All GPUs of a node by its driver.
struct GpuReading {
  enum class State : uint8_t {
    kRead,
    kAbsent,  ///< There is no driver, or no library of it.
    kFailed,  ///< It does not work.
  };
  State state = State::kRead;
  std::string message = {};  ///< Why there is nothing.
  std::string driver_version = {};
  uint32_t listed_count = 0;        ///< GPUs that the driver lists and that we may see.
  std::vector<uint32_t> lost = {};  ///< Those among them that are gone.
  std::vector<GpuDevice> devices = {};
  std::vector<std::pair<uint32_t, uint64_t>> xids = {};  ///< GPU and code of each since the last reading.
};

}  // namespace lockstep::agent
