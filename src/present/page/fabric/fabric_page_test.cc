#include "present/page/fabric/fabric_page.h"

#include <gmock/gmock.h>

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

size_t Count(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(FabricPageTest, APointHasItsPlaceItsSpreadAndItsRow) {
  const std::string page = FabricPage(MakeFabric(2));
  // Two pictures of two points, and a key each.
  EXPECT_EQ(Count(page, "<path class=\"point\""), 6u);
  EXPECT_THAT(page, HasSubstr("all_reduce of 1.00 MiB: 1.00 GB/s, ranks 900 MB/s to 1.10 GB/s"));
  EXPECT_THAT(page, HasSubstr("all_reduce of 8 B: 100 ns, ranks 50 ns to 200 ns"));
  EXPECT_THAT(page, HasSubstr("<td>all_reduce</td><td class=\"number\">8 B</td><td class=\"number\">100 ns</td>"));
  EXPECT_THAT(page, HasSubstr("At best 1.00 GB/s"));
  EXPECT_THAT(page, HasSubstr("--pairs</code> does")) << "pairs were not measured";
}

TEST(FabricPageTest, ASlowLinkIsFramedBothWaysAndListedFirst) {
  model::Fabric fabric = MakeFabric(3);
  fabric.pairs = {
      {0, 1, 500, 2e9, 2e9, true, false}, {0, 2, 500, 2e9, 1e8, true, true}, {1, 2, 500, 1.9e9, 2e9, true, false}};
  const std::string page = FabricPage(fabric);
  EXPECT_EQ(Count(page, "<rect class=\"cell\""), 6u);
  EXPECT_EQ(Count(page, "<rect class=\"slow\""), 2u);
  EXPECT_LT(page.find("<td>0 and 2</td>"), page.find("<td>1 and 2</td>"));
  EXPECT_LT(page.find("<td>1 and 2</td>"), page.find("<td>0 and 1</td>")) << "then by their slower way";
  EXPECT_THAT(page, HasSubstr("1 of 3 links is slow."));
}

TEST(FabricPageTest, AnEarlierRunIsDashedBesideAndHasItsColumns) {
  const model::Fabric fabric = MakeFabric(2);
  model::Fabric earlier = MakeFabric(4);
  earlier.source = "last week.json";
  earlier.points = {{"all_reduce", 1 << 20, 8e8}, {"broadcast", 8, 1e6}, {"reduce", 8, 1e6}};
  const std::string page = FabricPage(fabric, &earlier);
  EXPECT_EQ(Count(page, "<path class=\"earlier curve\""), 1u) << "its times were not recorded";
  EXPECT_EQ(Count(page, "<path class=\"earlier point\""), 1u);
  EXPECT_THAT(page, HasSubstr("all_reduce of 1.00 MiB, earlier: 800 MB/s"));
  EXPECT_THAT(page, HasSubstr("<td class=\"number\">800 MB/s</td><td class=\"number\">+25.0 %</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"number\">-</td><td class=\"number\">-</td></tr>"))
      << "8 bytes were not measured";
  EXPECT_THAT(
      page,
      HasSubstr("the earlier run: 4 ranks on 1 host, MPI, last week.json. Measured only then: broadcast, reduce."));
  const std::string alone = FabricPage(fabric);
  EXPECT_EQ(Count(alone, "class=\"earlier") + Count(alone, "Earlier busbw"), 0u);
}

TEST(FabricPageTest, WhatAFileSaysStaysText) {
  model::Fabric fabric = MakeFabric(2);
  fabric.backend = "<script>";
  fabric.source = "a&b";
  fabric.points[0].operation = "\"><img src=x>";
  const std::string page = FabricPage(fabric);
  for (const std::string& each : {page, FabricPage(MakeFabric(2), &fabric)}) {
    EXPECT_THAT(each, Not(HasSubstr("<script")));
    EXPECT_THAT(each, Not(HasSubstr("<img")));
    EXPECT_THAT(each, HasSubstr("a&amp;b"));
  }
}

TEST(FabricPageTest, VeryManyRanksAreATable) {
  model::Fabric fabric = MakeFabric(1000);
  for (int64_t rank = 1; rank < 1000; ++rank) fabric.pairs.push_back({0, rank, 500, 2e9, 2e9, false, false});
  const std::string page = FabricPage(fabric);
  EXPECT_THAT(page, HasSubstr("1000 ranks are too many to be drawn"));
  EXPECT_THAT(page, HasSubstr("The 200 slowest of 999 pairs"));
  EXPECT_EQ(Count(page, "<rect"), 0u);
}

TEST(FabricPageTest, ValuesThatNoNetworkHasAreATableAlone) {
  model::Fabric fabric = MakeFabric(2);
  fabric.points = {{"all_reduce", 1, 1e300}, {"reduce", INT64_MAX, 1e-300}};
  const std::string page = FabricPage(fabric);
  EXPECT_EQ(Count(page, "<svg"), 0u);
  EXPECT_THAT(page, HasSubstr("<td>reduce</td>"));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace lockstep::page
