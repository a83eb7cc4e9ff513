#include "ingest/job/communicators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kWorld = 1, kPair = 2;

/// The ring of a rank with one communicator, in which it has a place.
LoadedTrace Ring(int32_t rank, uint64_t id, int32_t place, int32_t size) {
  LoadedTrace ring;
  ring.is_nccl_ring = true;
  ring.trace.rank = {rank};
  ring.trace.world_size = 4;
  ring.communicators.push_back({id, place});
  ring.trace.groups.push_back({.name = "communicator", .description = "", .backend = "nccl", .size = size});
  model::CollectiveRecord send;
  send.communicator_id = id;
  send.destination_rank = 1;
  ring.trace.collectives.push_back(send);
  return ring;
}

TEST(CommunicatorsTest, MembersAreInTheCommunicatorsOrderAndPeersAreRanksOfTheJob) {
  std::vector<LoadedTrace> traces;
  traces.push_back(Ring(3, kPair, 0, 2));
  traces.push_back(Ring(2, kPair, 1, 2));
  ResolveCommunicators(&traces);
  for (const LoadedTrace& ring : traces) {
    EXPECT_THAT(ring.trace.groups[0].ranks, ElementsAre(3, 2));
    EXPECT_EQ(ring.trace.collectives[0].destination_rank, 2);
  }
}

TEST(CommunicatorsTest, WithoutAllRingsOnlyTheWholeJobIsKnown) {
  std::vector<LoadedTrace> traces;
  traces.push_back(Ring(0, kWorld, 0, 4));
  traces.push_back(Ring(2, kWorld, 2, 4));
  traces.push_back(Ring(3, kPair, 0, 2));
  ResolveCommunicators(&traces);
  EXPECT_THAT(traces[0].trace.groups[0].ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(traces[0].trace.collectives[0].destination_rank, 1);
  EXPECT_THAT(traces[2].trace.groups[0].ranks, IsEmpty());
  EXPECT_EQ(traces[2].trace.collectives[0].destination_rank, std::nullopt);
}

TEST(CommunicatorsTest, APlaceThatIsNotTheRankLeavesTheRestUnknown) {
  std::vector<LoadedTrace> traces;
  traces.push_back(Ring(0, kWorld, 3, 4));
  ResolveCommunicators(&traces);
  EXPECT_THAT(traces[0].trace.groups[0].ranks, IsEmpty());
}

TEST(CommunicatorsTest, CommunicatorsThatSayTheyAreHugeTakeNoMoreMemoryThanAJobs) {
  constexpr int32_t kHuge = 1 << 24;
  std::vector<LoadedTrace> traces;
  traces.push_back(Ring(0, kWorld, 0, kHuge));
  traces[0].trace.world_size = kHuge;
  for (uint64_t id = 2; id <= 1'000; ++id) {
    traces[0].communicators.push_back({id, 0});
    traces[0].trace.groups.push_back(traces[0].trace.groups[0]);
  }
  ResolveCommunicators(&traces);
  size_t members = 0;
  for (const model::ProcessGroup& group : traces[0].trace.groups) members += group.ranks.size();
  EXPECT_LE(members, size_t{1} << 26);
}

TEST(CommunicatorsTest, DamagedPlacesAreNoMembers) {
  std::vector<LoadedTrace> traces;
  traces.push_back(Ring(0, kPair, -5, 2));
  traces.push_back(Ring(1, kPair, 1 << 30, 2));
  traces[0].trace.collectives[0].destination_rank = -7;
  ResolveCommunicators(&traces);
  EXPECT_THAT(traces[0].trace.groups[0].ranks, IsEmpty());
  EXPECT_EQ(traces[0].trace.collectives[0].destination_rank, std::nullopt);
}

}  // namespace
}  // namespace lockstep::ingest
