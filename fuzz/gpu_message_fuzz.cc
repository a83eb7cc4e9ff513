// What the GPU helper says to the daemon: a stream of frames, in pieces as long as the first byte says. What is taken
// from it must be bounded, printable and a number, each series once.
#include <cmath>
#include <set>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "fuzz.h"
#include "node/agent/gpu/gpu_metrics.h"
#include "node/agent/gpu/gpu_wire.h"

namespace {

using namespace lockstep;
using namespace lockstep::agent;

void Check(const GpuReading& reading) {
  FUZZ_CHECK(reading.devices.size() <= kGpuDevices && reading.lost.size() <= kGpuDevices);
  std::set<std::pair<uint32_t, std::optional<uint32_t>>> devices;
  for (const GpuDevice& device : reading.devices) {
    FUZZ_CHECK(devices.insert({device.gpu, device.instance}).second);
    FUZZ_CHECK(device.samples.size() <= kGpuSamples);
    for (const std::string* text : {&device.uuid, &device.model, &device.pci_bus_id, &device.mig_profile}) {
      FUZZ_CHECK(Printable(*text) == *text);
    }
    for (const GpuSample& sample : device.samples) {
      FUZZ_CHECK(std::isfinite(sample.value) && GpuMetricName(sample.metric) != nullptr);
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = data[0] + size_t{1};
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  FrameReader frames;
  GpuMetrics metrics("n1", {});
  for (size_t at = 0; at < bytes.size(); at += step) {
    frames.Add(bytes.substr(at, step));
    while (true) {
      const auto frame = frames.Next();
      if (!frame) return 0;
      if (!*frame) break;
      (void)ParseRequest(**frame);
      const auto message = ParseMessage(**frame);
      if (!message || !message->reading) continue;
      Check(*message->reading);
      metrics.Take(*message->reading, {});
      std::set<std::string> series;
      for (const auto& family : metrics.Collect({})) {
        for (const auto& metric : family.metric) {
          std::string key = family.name;
          for (const auto& label : metric.label) key += "\n" + label.name + "\n" + label.value;
          FUZZ_CHECK(series.insert(key).second);
        }
      }
    }
  }
  return 0;
}
