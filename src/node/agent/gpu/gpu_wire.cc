#include "node/agent/gpu/gpu_wire.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <tuple>

#include "base/archive.h"
#include "base/utf8.h"
#include "node/agent/gpu/gpu_metrics.h"

namespace lockstep::agent {
namespace {

std::string Framed(const std::string& bytes) {
  const auto size = static_cast<uint32_t>(bytes.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + bytes;
}

void CheckText(std::string* text) { *text = Printable(std::string_view(*text).substr(0, kGpuTextBytes)); }

void CheckReading(GpuReading* reading) {
  CheckText(&reading->driver_version);
  reading->message = Printable(std::string_view(reading->message).substr(0, 1024));
  if (reading->state > GpuReading::State::kFailed) reading->state = GpuReading::State::kFailed;
  if (reading->devices.size() > kGpuDevices) reading->devices.resize(kGpuDevices);
  if (reading->lost.size() > kGpuDevices) reading->lost.resize(kGpuDevices);
  std::set<std::pair<uint32_t, std::optional<uint32_t>>> devices;
  std::erase_if(reading->devices, [&](const GpuDevice& device) {
    return device.gpu >= kGpuDevices || !devices.insert({device.gpu, device.instance}).second;
  });
  std::erase_if(reading->xids, [](const auto& xid) { return xid.first >= kGpuDevices; });
  for (GpuDevice& device : reading->devices) {
    for (std::string* text : {&device.uuid, &device.model, &device.pci_bus_id, &device.mig_profile}) CheckText(text);
    if (device.samples.size() > kGpuSamples) device.samples.resize(kGpuSamples);
    std::erase_if(device.samples, [](const GpuSample& sample) {
      const bool is_known = static_cast<size_t>(sample.metric) < kGpuMetricCount;
      return !is_known || !std::isfinite(sample.value) ||
             (sample.value < 0 && sample.metric != GpuMetric::kTemperature);
    });
    for (GpuSample& sample : device.samples) {
      CheckText(&sample.part);
      if (GpuMetricPart(sample.metric) == nullptr) sample.part.clear();
    }
    std::set<std::pair<GpuMetric, std::string>> samples;
    std::erase_if(device.samples, [&](const GpuSample& sample) {
      return !samples.insert({sample.metric, sample.part}).second;
    });
  }
}

}  // namespace

std::string ToFrame(const GpuRequest& request) { return Framed(ToBytes(request)); }
std::string ToFrame(const GpuMessage& message) { return Framed(ToBytes(message)); }

Result<std::optional<std::string>> FrameReader::Next() {
  uint32_t size = 0;
  if (bytes_.size() < sizeof(size)) return std::optional<std::string>();
  std::memcpy(&size, bytes_.data(), sizeof(size));
  if (size > kGpuFrameBytes) return Error{ErrorCode::kCorruptData, "a message of the GPU helper is too long"};
  if (bytes_.size() - sizeof(size) < size) return std::optional<std::string>();
  std::optional<std::string> frame = bytes_.substr(sizeof(size), size);
  bytes_.erase(0, sizeof(size) + size);
  return frame;
}

Result<GpuRequest> ParseRequest(std::string_view frame) { return FromBytes<GpuRequest>(frame); }

Result<GpuMessage> ParseMessage(std::string_view frame) {
  ASSIGN_OR_RETURN(GpuMessage message, FromBytes<GpuMessage>(frame));
  if (message.reading) CheckReading(&*message.reading);
  return message;
}

}  // namespace lockstep::agent
