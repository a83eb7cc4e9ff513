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
