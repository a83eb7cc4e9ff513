#include "analysis/bandwidth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::analysis {
namespace {

using ::testing::ElementsAre;

CollectiveInstance Instance(const char* name, int64_t bytes, double busbw) {
  CollectiveInstance instance;
  instance.name = name;
  instance.group_size = 4;
  instance.bytes = bytes;
  instance.busbw_bytes_per_s = busbw;
  instance.algbw_bytes_per_s = busbw / 1.5;
  return instance;
}

TEST(BandwidthTest, InstancesOfOneSizeAreOnePoint) {
  Collectives collectives;
  for (const double busbw : {3e9, 1e9, 5e9, 2e9, 4e9})
    collectives.instances.push_back(Instance("all_reduce", 64, busbw));
  collectives.instances.push_back(Instance("all_reduce", 128, 6e9));
  collectives.instances.push_back(Instance("all_gather", 64, 7e9));
  const std::vector<BandwidthRow> rows = ComputeBandwidth(collectives);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "all_gather");
  EXPECT_EQ(rows[1].bytes, 64);
  EXPECT_EQ(rows[1].count, 5u);
  EXPECT_THAT(rows[1].busbw_bytes_per_s, ElementsAre(1e9, 2e9, 3e9, 4e9, 5e9));
  EXPECT_DOUBLE_EQ(rows[1].algbw_median_bytes_per_s, 2e9);
  EXPECT_EQ(rows[2].bytes, 128);
}

TEST(BandwidthTest, OtherGroupSizesAreOtherPoints) {
  Collectives collectives;
  collectives.instances = {Instance("all_reduce", 64, 1e9), Instance("all_reduce", 64, 2e9)};
  collectives.instances[1].group_size.reset();
  EXPECT_EQ(ComputeBandwidth(collectives).size(), 2u);
}

TEST(BandwidthTest, WithoutABandwidthThereIsNoPoint) {
  Collectives collectives;
  collectives.instances = {Instance("all_reduce", 64, 1e9), Instance("all_reduce", 64, 1e9)};
  collectives.instances[0].bytes.reset();
  collectives.instances[1].busbw_bytes_per_s.reset();
  EXPECT_TRUE(ComputeBandwidth(collectives).empty());
}

}  // namespace
}  // namespace lockstep::analysis
