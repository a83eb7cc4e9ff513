#include "analysis/fabric/fabric.h"

#include <gmock/gmock.h>

#include "analysis/analysis_result.h"
#include "analysis/collectives.h"
#include "analysis/pass_registry.h"

namespace lockstep::analysis {
namespace {

using ::testing::ElementsAre;

Collectives Of(std::initializer_list<std::tuple<const char*, int64_t, double, int64_t>> instances) {
  Collectives collectives;
  for (const auto& [name, bytes, busbw, transfer_ns] : instances) {
    CollectiveInstance& instance = collectives.instances.emplace_back();
    instance.name = name;
    instance.bytes = bytes;
    instance.group_size = 8;
    instance.busbw_bytes_per_s = busbw;
    instance.transfer_ns = transfer_ns;
  }
  return collectives;
}

model::Fabric FabricOf(std::vector<model::FabricPoint> points) {
  model::Fabric fabric;
  fabric.points = std::move(points);
  return fabric;
}

TEST(FabricTest, BetweenMeasuredSizesItIsInterpolatedOverTheirLogarithm) {
  const model::Fabric fabric = FabricOf({{"all_reduce", 1 << 10, 100}, {"all_reduce", 1 << 20, 200}});
  const auto at = [&](int64_t bytes) {
    return CompareWithFabric(Of({{"all_reduce", bytes, 50, 1000}}), fabric)[0].fabric_busbw_bytes_per_s;
  };
  EXPECT_DOUBLE_EQ(at(1 << 10), 100);
  EXPECT_DOUBLE_EQ(at(1 << 15), 150);
  EXPECT_DOUBLE_EQ(at(1 << 20), 200);
  EXPECT_DOUBLE_EQ(at(1), 100) << "beyond the ends that of the end";
  EXPECT_DOUBLE_EQ(at(1 << 30), 200);
}

TEST(FabricTest, CallsOfOneKindAreARowAndTheLongestComesFirst) {
  const model::Fabric fabric = FabricOf({{"all_gather", 64, 10}, {"all_reduce", 64, 100}, {"send_recv", 64, 40}});
  const auto rows = CompareWithFabric(Of({{"all_reduce", 64, 50, 1000},
                                          {"all_reduce", 64, 70, 3000},
                                          {"all_gather", 64, 10, 9000},
                                          {"send", 64, 10, 10},
                                          {"broadcast", 64, 1, 1'000'000}}),
                                      fabric);
  ASSERT_EQ(rows.size(), 3u) << "broadcast was not measured";
  EXPECT_EQ(rows[0].name, "all_gather");
  EXPECT_EQ(rows[1].count, 2u);
  EXPECT_EQ(rows[1].transfer_ns, 4000);
  EXPECT_DOUBLE_EQ(rows[1].busbw_median_bytes_per_s, 60);
  EXPECT_DOUBLE_EQ(rows[1].ratio, 0.6);
  EXPECT_DOUBLE_EQ(rows[2].ratio, 0.25);
  EXPECT_DOUBLE_EQ(*FabricRatio(rows), (9000 * 1 + 4000 * 0.6 + 10 * 0.25) / 13010);
  EXPECT_FALSE(FabricRatio({}));
}

TEST(FabricTest, ItIsATableOfTheResult) {
  AnalysisResult result;
  result.Edit<Collectives>() = Of({{"all_reduce", 64, 50, 1000}});
  AddFabric(FabricOf({{"all_reduce", 64, 100}}), &result);
  EXPECT_THAT(PassesOf(result), ElementsAre("collectives", "fabric"));
  EXPECT_EQ(result.Get<FabricComparison>().rows.size(), 1u);
}

}  // namespace
}  // namespace lockstep::analysis
