#include "analysis/parallelism/device_peak.h"

#include <gtest/gtest.h>

namespace lockstep::analysis {
namespace {

TEST(DevicePeakTest, NamesAsTracesHaveThemAreFound) {
  ASSERT_NE(FindDevicePeak("NVIDIA H100 80GB HBM3"), nullptr);
  EXPECT_EQ(FindDevicePeak("NVIDIA H100 80GB HBM3")->source, "NVIDIA H100 datasheet (SXM)");
  EXPECT_EQ(FindDevicePeak("NVIDIA H100 PCIe")->source, "NVIDIA H100 datasheet (PCIe)");
  ASSERT_NE(FindDevicePeak("AMD Instinct MI300X VF"), nullptr);
  ASSERT_NE(FindDevicePeak("Tesla V100-SXM2-16GB"), nullptr);
  EXPECT_EQ(FindDevicePeak("Tesla V100-SXM2-16GB")->FlopsPerSecond(Precision::kBf16), std::nullopt);
}

TEST(DevicePeakTest, ADeviceThatIsNotInTheTableHasNoPeak) {
  for (const char* name : {"", "NVIDIA L40", "NVIDIA GH200 480GB", "NVIDIA A100-PG509-200", "Some Device"}) {
    EXPECT_EQ(FindDevicePeak(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace lockstep::analysis
