#include "present/page/fabric/fabric_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::page {
namespace {

using testing::HasSubstr;
using testing::Not;

model::Fabric MakeFabric(int64_t rank_count) {
  model::Fabric fabric;
  fabric.source = "bench.json";
  fabric.backend = "MPI";
  fabric.rank_count = rank_count;
  fabric.hosts.assign(static_cast<size_t>(rank_count), "node0");
  fabric.points = {{"all_reduce", 8, 1e6, 5e5, 2e6, 100}, {"all_reduce", 1 << 20, 1e9, 9e8, 1.1e9, 1e6}};
  return fabric;
}

TEST(FabricPageTest, WithoutAScriptItSaysTheBestAndEachPoint) {
  model::Fabric fabric = MakeFabric(3);
  fabric.pairs = {{0, 1, 500, 2e9, 2e9, true, false}, {0, 2, 500, 2e9, 1e8, true, true}};
  model::Fabric earlier = MakeFabric(4);
  earlier.source = "last week.json";
  const std::string page = FabricPage(fabric, &earlier);
  EXPECT_THAT(page, HasSubstr(R"(<meta name="lockstep-kind" content="fabric">)"));
  EXPECT_THAT(page, HasSubstr("3 ranks on 1 host, MPI. At best 1.00 GB/s of bus bandwidth: all_reduce of 1.00 MiB."));
  EXPECT_THAT(page, HasSubstr("slow link: ranks 0 and 2, 2.00 GB/s there, 100 MB/s back"));
  EXPECT_THAT(page, HasSubstr("The earlier run: 4 ranks on 1 host, MPI. last week.json"));
}

TEST(FabricPageTest, WhatAFileSaysStaysText) {
  model::Fabric fabric = MakeFabric(2);
  fabric.backend = "<i>";
  fabric.source = "a&b";
  fabric.points[0].operation = "\"><img src=x>";
  const std::string page = FabricPage(fabric);
  EXPECT_THAT(page, Not(HasSubstr("<i>")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("a&amp;b"));
}

TEST(FabricPageTest, ValuesThatNoNetworkHasAreWritten) {
  model::Fabric fabric = MakeFabric(2);
  fabric.points = {{"all_reduce", 1, 1e300}, {"reduce", INT64_MAX, 1e-300}};
  EXPECT_THAT(FabricPage(fabric), HasSubstr("reduce"));
  fabric.points.clear();
  EXPECT_THAT(FabricPage(fabric), HasSubstr("2 ranks on 1 host, MPI."));
}

}  // namespace
}  // namespace lockstep::page
