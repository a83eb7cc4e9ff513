#include "node/agent/gpu/amd_sensor.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "node/agent/sensors/testing/fake_sysfs.h"

namespace lockstep::agent {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

class AmdSensorTest : public FakeSysfs {
 protected:
  AmdSensorTest() { std::filesystem::create_directories(root_ / "class/drm"); }
  /// A card whose device lies where the bus has it, as in the real tree; what it has is written there.
  std::string AddCard(const std::string& name, const std::string& bus_id) {
    std::filesystem::create_directories(root_ / "devices" / bus_id);
    std::filesystem::create_directories(root_ / "class/drm" / name);
    std::filesystem::create_directory_symlink(root_ / "devices" / bus_id, root_ / "class/drm" / name / "device");
    return "devices/" + bus_id + "/";
  }
};

std::map<std::string, double> Values(const Reading& reading) {
  std::map<std::string, double> values;
  for (const auto& family : reading.families) {
    for (const auto& metric : family.metric) {
      std::string key = family.name;
      for (const auto& label : metric.label) key += " " + label.value;
      EXPECT_TRUE(values.emplace(key, metric.gauge.value).second) << key;
    }
  }
  return values;
}

TEST_F(AmdSensorTest, ACardIsReadWithItsUnits) {
  const std::string card = AddCard("card1", "0000:c1:00.0");
  Write(card + "vendor", "0x1002");
  Write(card + "unique_id", "a1b2");
  Write(card + "product_name", "Instinct");
  Write(card + "gpu_busy_percent", "37");
  Write(card + "mem_info_vram_used", "1000");
  Write(card + "mem_info_vram_total", "5000");
  Write(card + "hwmon/hwmon4/power1_cap", "750000000");
  Write(card + "hwmon/hwmon4/temp1_input", "41000");
  Write(card + "hwmon/hwmon4/temp1_label", "edge");
  Write(card + "hwmon/hwmon4/temp2_input", "52500");
  Write(card + "hwmon/hwmon4/temp2_label", "junction");
  Write(card + "hwmon/hwmon4/temp3_input", "48000");
  Write(card + "hwmon/hwmon4/temp3_label", "mem");
  Write(card + "hwmon/hwmon4/freq1_input", "2100000000");
  Write(card + "hwmon/hwmon4/freq1_label", "sclk");
  const Result<Reading> reading = AmdSensor("n1", root_.string()).Look();
  EXPECT_TRUE(reading->is_present);
  EXPECT_THAT(Values(*reading),
              UnorderedElementsAre(Pair("lockstep_gpu_info n1 card1 a1b2 Instinct 0000:c1:00.0 amd", 1),
                                   Pair("lockstep_gpu_utilization_ratio n1 card1", 0.37),
                                   Pair("lockstep_gpu_memory_used_bytes n1 card1", 1000),
                                   Pair("lockstep_gpu_memory_total_bytes n1 card1", 5000),
                                   Pair("lockstep_gpu_power_limit_watts n1 card1", 750),
                                   Pair("lockstep_gpu_temperature_celsius n1 card1 gpu", 41),
                                   Pair("lockstep_gpu_temperature_celsius n1 card1 junction", 52.5),
                                   Pair("lockstep_gpu_temperature_celsius n1 card1 memory", 48),
                                   Pair("lockstep_gpu_clock_hertz n1 card1 graphics", 2.1e9)));
}

TEST_F(AmdSensorTest, WhatIsOddOrAnothersIsLeftOut) {
  const std::string bare = AddCard("card0", "0000:01:00.0");
  Write(bare + "vendor", "0x1002");
  Write(bare + "gpu_busy_percent", "N/A");
  Write(bare + "hwmon/hwmon0/temp1_input", "41000");
  Write(bare + "hwmon/hwmon0/temp2_input", "42000");
  Write(bare + "hwmon/hwmon0/temp2_label", "temp1");  // Named as the first is for want of a label.
  Write(AddCard("card2", "0000:02:00.0") + "vendor", "0x10de");
  std::filesystem::create_directories(root_ / "class/drm/card3");
  std::filesystem::create_directories(root_ / "class/drm/renderD128");
  const std::string connector = AddCard("card0-DP-1", "0000:03:00.0");
  Write(connector + "vendor", "0x1002");
  const Result<Reading> reading = AmdSensor("n1", root_.string()).Look();
  EXPECT_THAT(Values(*reading), UnorderedElementsAre(Pair("lockstep_gpu_info n1 card0 0000:01:00.0 amd", 1),
                                                     Pair("lockstep_gpu_temperature_celsius n1 card0 temp1", 41)));
}

TEST_F(AmdSensorTest, WithoutCardsThereIsNothing) {
  const Result<Reading> reading = AmdSensor("n1", (root_ / "nowhere").string()).Look();
  EXPECT_FALSE(reading->is_present);
  EXPECT_TRUE(reading->families.empty());
}

}  // namespace
}  // namespace lockstep::agent
