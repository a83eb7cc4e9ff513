#include "node/agent/gpu/gpu_wire.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace lockstep::agent {
namespace {

using testing::ElementsAre;

GpuMessage OneGpu() {
  GpuDevice device{.gpu = 3, .uuid = "GPU-1", .model = "H100", .pci_bus_id = "0:3:0.0", .reasons = 64};
  device.samples = {{GpuMetric::kTemperature, "gpu", 43}, {GpuMetric::kMemoryUsed, "", 1e9}};
  GpuReading reading;
  reading.driver_version = "550.54";
  reading.listed_count = 8;
  reading.lost = {5};
  reading.devices = {device};
  reading.xids = {{5, 79}};
  return GpuMessage{.reading = reading};
}

/// What comes out at the other end when `message` comes in pieces of `step` bytes.
std::optional<GpuReading> Sent(const GpuMessage& message, size_t step = 1 << 20) {
  const std::string bytes = ToFrame(message);
  FrameReader frames;
  for (size_t at = 0; at < bytes.size(); at += step) {
    frames.Add(std::string_view(bytes).substr(at, step));
    const auto frame = frames.Next();
    if (!frame || !*frame) continue;
    const auto parsed = ParseMessage(**frame);
    return parsed ? parsed->reading : std::nullopt;
  }
  return std::nullopt;
}

TEST(GpuWireTest, AReadingArrivesInWhateverPieces) {
  for (const size_t step : {1, 7, 100000}) {
    const auto reading = Sent(OneGpu(), step);
    ASSERT_TRUE(reading);
    EXPECT_EQ(reading->driver_version, "550.54");
    EXPECT_EQ(reading->listed_count, 8u);
    EXPECT_THAT(reading->lost, ElementsAre(5));
    EXPECT_THAT(reading->xids, ElementsAre(std::pair(5u, uint64_t{79})));
    ASSERT_EQ(reading->devices.size(), 1u);
    const GpuDevice& device = reading->devices[0];
    EXPECT_EQ(device.model, "H100");
    EXPECT_EQ(device.reasons, 64u);
    EXPECT_EQ(device.instance, std::nullopt);
    ASSERT_EQ(device.samples.size(), 2u);
    EXPECT_EQ(device.samples[0].part, "gpu");
    EXPECT_EQ(device.samples[1].value, 1e9);
  }
}

TEST(GpuWireTest, RequestsAndAnnouncementsArriveInOrder) {
  FrameReader frames;
  frames.Add(ToFrame(GpuMessage{.gpu = 7}) + ToFrame(GpuMessage{}) + ToFrame(GpuRequest{{1, 2}}));
  EXPECT_EQ(ParseMessage(**frames.Next())->gpu, 7u);
  EXPECT_EQ(ParseMessage(**frames.Next())->gpu, std::nullopt);
  EXPECT_THAT(ParseRequest(**frames.Next())->skipped, ElementsAre(1, 2));
  EXPECT_EQ(*frames.Next(), std::nullopt);
}

TEST(GpuWireTest, NoSeriesComesTwiceAndNoValueIsNoNumber) {
  GpuMessage message = OneGpu();
  auto& devices = message.reading->devices;
  devices[0].samples = {{GpuMetric::kEnergy, "", 1},
                        {GpuMetric::kEnergy, "", 2},
                        {GpuMetric::kEnergy, "which has no parts", 3},
                        {GpuMetric::kClock, "sm", std::nan("")},
                        {GpuMetric::kClock, "sm", std::numeric_limits<double>::infinity()},
                        {GpuMetric::kMemoryUsed, "", -1},
                        {GpuMetric::kTemperature, "gpu", -5},
                        {static_cast<GpuMetric>(200), "", 1}};
  devices.push_back(devices[0]);
  devices.push_back({.gpu = 3, .instance = 1});
  devices.push_back({.gpu = 1u << 30});
  const auto reading = Sent(message);
  ASSERT_TRUE(reading);
  ASSERT_EQ(reading->devices.size(), 2u);
  ASSERT_EQ(reading->devices[0].samples.size(), 2u);
  EXPECT_EQ(reading->devices[0].samples[0].value, 1);
  EXPECT_EQ(reading->devices[0].samples[1].value, -5);
  EXPECT_EQ(reading->devices[1].instance, 1u);
}

TEST(GpuWireTest, WhatIsTooMuchIsCut) {
  GpuMessage message = OneGpu();
  message.reading->devices[0].model = std::string(1000, 'x') + "\n";
  message.reading->devices[0].uuid = "a\nb";
  for (int i = 0; i < 1000; ++i) {
    message.reading->devices[0].samples.push_back({GpuMetric::kClock, std::to_string(i), 1});
    message.reading->devices.push_back({.gpu = 4, .instance = static_cast<uint32_t>(i)});
  }
  const auto reading = Sent(message);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->devices.size(), kGpuDevices);
  EXPECT_EQ(reading->devices[0].samples.size(), kGpuSamples);
  EXPECT_EQ(reading->devices[0].model.size(), kGpuTextBytes);
  EXPECT_EQ(reading->devices[0].uuid, "a?b");
}

TEST(GpuWireTest, BytesThatAreNoMessageAreRefused) {
  EXPECT_FALSE(ParseMessage("x"));
  EXPECT_FALSE(ParseRequest(std::string(8, '\xff')));
  const std::string whole = ToFrame(OneGpu()).substr(4);
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(ParseMessage(whole.substr(0, size))) << size;
  EXPECT_FALSE(ParseMessage(whole + "x"));
  FrameReader frames;
  frames.Add(std::string(4, '\xff'));
  EXPECT_EQ(frames.Next().error().code, ErrorCode::kCorruptData);
}

}  // namespace
}  // namespace lockstep::agent
