#pragma once

#include <cstdint>

/// What we use of the binary interface of NVIDIA's management library (libnvidia-ml.so.1), declared here because the
/// build has no headers of NVIDIA's. Layouts and numbers: NVML API Reference Guide, and nvidia-ml-py, NVIDIA's own
/// binding; only those that have been the same in all versions. (Fields 251 and up have not: 251 was a clocks event
/// reason in one release and power smoothing in the next.)
namespace lockstep::agent::nvml {

struct DeviceObject;
struct EventSetObject;
struct GpmSampleObject;
using Device = DeviceObject*;
using EventSet = EventSetObject*;
using GpmSample = GpmSampleObject*;

using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kGpuNotFound = 28;
inline constexpr Return kUnknown = 999;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];  ///< Empty before version 3 of the call.
};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct MemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};

/// As NVML_STRUCT_VERSION makes it: the size, and the version in the top byte.
template <typename T>
constexpr unsigned StructVersion(unsigned version) {
  return static_cast<unsigned>(sizeof(T)) | version << 24;
}

struct Utilization {
  unsigned gpu;  ///< Percent.
  unsigned memory;
};

inline constexpr int kTemperatureGpu = 0;
struct TemperatureV1 {
  unsigned version;
  int sensor;
  int temperature;
};

inline constexpr int kClockGraphics = 0;
inline constexpr int kClockSm = 1;
inline constexpr int kClockMemory = 2;
inline constexpr int kClockVideo = 3;

inline constexpr int kPolicyPower = 0;
inline constexpr int kPolicyThermal = 1;
inline constexpr int kPolicySyncBoost = 2;
inline constexpr int kPolicyBoardLimit = 3;
struct ViolationTime {
  unsigned long long reference_us;
  unsigned long long violation_ns;
};

/// Bits of the clocks event reasons.
inline constexpr uint64_t kReasonSwPowerCap = 0x4;
inline constexpr uint64_t kReasonSyncBoost = 0x10;
inline constexpr uint64_t kReasonSwThermal = 0x20;
inline constexpr uint64_t kReasonHwThermal = 0x40;
inline constexpr uint64_t kReasonHwPowerBrake = 0x80;

inline constexpr int kMemoryErrorCorrected = 0;
inline constexpr int kMemoryErrorUncorrected = 1;
inline constexpr int kEccVolatile = 0;  ///< Since the driver was loaded.

inline constexpr unsigned kFieldMemoryTemperature = 82;
inline constexpr unsigned kFieldNvlinkCount = 91;
inline constexpr unsigned kFieldNvlinkDataTransmitted = 138;  ///< KiB; scope: a link, or all of them.
inline constexpr unsigned kFieldNvlinkDataReceived = 139;
inline constexpr unsigned kFieldPcieTransmittedBytes = 197;
inline constexpr unsigned kFieldPcieReceivedBytes = 198;
inline constexpr unsigned kFieldNvlinkTransmittedBytes = 202;  ///< Of a link, as the following.
inline constexpr unsigned kFieldNvlinkReceivedBytes = 204;
inline constexpr unsigned kScopeAllLinks = 0xffffffff;

struct FieldValue {
  uint32_t field;
  uint32_t scope;
  int64_t timestamp_us;
  int64_t latency_us;
  int type;
  Return result;
  union {
    double d;
    unsigned ui;
    unsigned long ul;
    unsigned long long ull;
    long long sll;
    int si;
    unsigned short us;
  } value;
};
inline constexpr int kTypeDouble = 0;
inline constexpr int kTypeUnsigned = 1;
inline constexpr int kTypeUnsignedLong = 2;
inline constexpr int kTypeUnsignedLongLong = 3;
inline constexpr int kTypeSignedLongLong = 4;
inline constexpr int kTypeSigned = 5;
inline constexpr int kTypeUnsignedShort = 6;

inline constexpr uint64_t kEventXid = 0x8;
struct EventData {
  Device device;
  unsigned long long type;
  unsigned long long data;  ///< Of kEventXid: the code.
  unsigned gpu_instance;
  unsigned compute_instance;
};

inline constexpr unsigned kGpmSmActive = 2;  ///< Percent, as the following.
inline constexpr unsigned kGpmTensorActive = 5;
inline constexpr unsigned kGpmDramActive = 10;
inline constexpr unsigned kGpmVersion = 1;
struct GpmSupport {
  unsigned version;
  unsigned is_supported;
};
struct GpmMetric {
  unsigned id;
  Return result;
  double value;
  const char* names[3];
};
struct GpmMetricsGet {
  unsigned version;
  unsigned count;
  GpmSample older;
  GpmSample newer;
  GpmMetric metrics[512];  ///< The library's own array is shorter; it goes by `count`.
};

static_assert(sizeof(PciInfo) == 68 && sizeof(MemoryV2) == 40 && sizeof(FieldValue) == 40 && sizeof(EventData) == 32 &&
              sizeof(GpmMetric) == 40);

}  // namespace lockstep::agent::nvml
