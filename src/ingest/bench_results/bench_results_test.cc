#include "ingest/bench_results/bench_results.h"

#include <gmock/gmock.h>

namespace lockstep::ingest {
namespace {

TEST(BenchResultsTest, EachOperationAndSizeHasABandwidth) {
  const auto fabric = ParseBenchResults(
      R"({"schema":"lockstep.bench-collectives/1","data":{"setup":{"backend":"MPI"},"ranks":[{},{}],"rows":[
        {"operation":"all_reduce","bytes":64,"out_of_place":{"busbw_bytes_per_s":5e9},"in_place":{"busbw_bytes_per_s":1}},
        {"operation":"broadcast","bytes":64,"out_of_place":null,"in_place":{"busbw_bytes_per_s":3e9}},
        {"operation":"all_reduce","bytes":8,"out_of_place":{"busbw_bytes_per_s":1e9},"in_place":null},
        {"operation":"reduce","bytes":8,"out_of_place":{"busbw_bytes_per_s":null},"in_place":null},
        {"operation":"reduce","bytes":-8,"out_of_place":{"busbw_bytes_per_s":1}}, 7]}})",
      "bench.json");
  ASSERT_TRUE(fabric) << fabric.error().ToString();
  ASSERT_EQ(fabric->points.size(), 3u);
  EXPECT_EQ(fabric->points[0].bytes, 8);
  EXPECT_DOUBLE_EQ(fabric->points[1].busbw_bytes_per_s, 5e9);
  EXPECT_EQ(fabric->points[2].operation, "broadcast");
  EXPECT_EQ(fabric->rank_count, 2);
  EXPECT_EQ(fabric->backend, "MPI");
}

TEST(BenchResultsTest, TheSpreadIsThatOfTheRanks) {
  const auto fabric = ParseBenchResults(
      R"({"schema":"lockstep.bench-collectives/1","data":{"ranks":[{"host":"a"},{}],"rows":[
        {"operation":"all_reduce","bytes":8,"out_of_place":
          {"mean_ns":200,"fastest_ns":100,"slowest_ns":400,"busbw_bytes_per_s":1e9},"in_place":null},
        {"operation":"all_reduce","bytes":16,"out_of_place":
          {"mean_ns":200,"fastest_ns":300,"slowest_ns":0,"busbw_bytes_per_s":1e9},"in_place":null}]}})",
      "bench.json");
  ASSERT_TRUE(fabric) << fabric.error().ToString();
  ASSERT_EQ(fabric->points.size(), 2u);
  EXPECT_DOUBLE_EQ(*fabric->points[0].slowest_busbw_bytes_per_s, 5e8);
  EXPECT_DOUBLE_EQ(*fabric->points[0].fastest_busbw_bytes_per_s, 2e9);
  EXPECT_DOUBLE_EQ(*fabric->points[0].mean_ns, 200);
  EXPECT_FALSE(fabric->points[1].slowest_busbw_bytes_per_s) << "nobody takes no time";
  EXPECT_FALSE(fabric->points[1].fastest_busbw_bytes_per_s) << "nobody is faster than the mean by taking longer";
  EXPECT_THAT(fabric->hosts, testing::ElementsAre("a", ""));
}

TEST(BenchResultsTest, PairsAreOfRanksThatThereAre) {
  const auto fabric = ParseBenchResults(
      R"({"schema":"lockstep.bench-collectives/1","data":{"ranks":[{},{},{}],"rows":[
        {"operation":"all_reduce","bytes":8,"out_of_place":{"busbw_bytes_per_s":1e9}}],"pairs":[
        {"rank_a":1,"rank_b":2,"same_host":true,"latency_ns":5,"bytes_per_s":3,"back_bytes_per_s":4,"is_slow":true},
        {"rank_a":0,"rank_b":1,"same_host":false,"latency_ns":5,"bytes_per_s":3,"back_bytes_per_s":4},
        {"rank_a":0,"rank_b":3,"latency_ns":5,"bytes_per_s":3,"back_bytes_per_s":4},
        {"rank_a":0,"rank_b":2,"latency_ns":0,"bytes_per_s":3,"back_bytes_per_s":4}, 9]}})",
      "bench.json");
  ASSERT_TRUE(fabric) << fabric.error().ToString();
  ASSERT_EQ(fabric->pairs.size(), 2u);
  EXPECT_EQ(fabric->pairs[0].rank_b, 1);
  EXPECT_FALSE(fabric->pairs[0].is_slow);
  EXPECT_TRUE(fabric->pairs[1].same_host);
  EXPECT_TRUE(fabric->pairs[1].is_slow);
}

TEST(BenchResultsTest, WhatIsNoneSaysHowToGetOne) {
  for (const char* text :
       {"", "{}", "[]", R"({"schema":"lockstep.analyze/1"})", R"({"schema":"lockstep.bench-collectives/1"})",
        R"({"schema":"lockstep.bench-collectives/1","data":{"rows":[]}})"}) {
    const auto fabric = ParseBenchResults(text, "x.json");
    ASSERT_FALSE(fabric) << text;
    EXPECT_THAT(fabric.error().ToString(), testing::HasSubstr("lockstep bench collectives"));
  }
}

}  // namespace
}  // namespace lockstep::ingest
