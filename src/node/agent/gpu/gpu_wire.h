#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/agent/gpu/gpu_reading.h"

namespace lockstep::agent {

/// What the daemon asks its helper for: one reading.
struct GpuRequest {
  std::vector<uint32_t> skipped;  ///< GPUs to skip, because they hung.
};

/// A message of the helper: any number of announcements which GPU it will ask next, and then the reading.
struct GpuMessage {
  std::optional<uint32_t> gpu = {};  ///< About to ask this one; unset: the driver.
  std::optional<GpuReading> reading = {};
};

/// Bounds of a reading: what is beyond them is cut by CheckReading().
inline constexpr size_t kGpuFrameBytes = size_t{1} << 20;
inline constexpr size_t kGpuDevices = 512;
inline constexpr size_t kGpuSamples = 64;  ///< Of a device.
inline constexpr size_t kGpuTextBytes = 96;

/// A length, then the value; between processes of one program, so without a version.
std::string ToFrame(const GpuRequest& request);
std::string ToFrame(const GpuMessage& message);

/// Reads frames from a stream of bytes.
class FrameReader {
 public:
  void Add(std::string_view bytes) { bytes_ += bytes; }
  /// The next whole one; nullopt: it has not all come. Errors: kCorruptData (longer than any frame is).
  Result<std::optional<std::string>> Next();

 private:
  std::string bytes_;
};

/// Errors: kCorruptData. A reading is within the bounds above, its texts printable, its values finite and not negative,
/// each of a device once: the process that made it has run a driver's library.
Result<GpuRequest> ParseRequest(std::string_view frame);
Result<GpuMessage> ParseMessage(std::string_view frame);

}  // namespace lockstep::agent
