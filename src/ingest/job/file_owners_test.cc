#include "ingest/job/file_owners.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep::ingest {
namespace {

TraceFile File(const std::string& path, uint64_t size_bytes, uint64_t inode) {
  TraceFile file;
  file.path = path;
  file.size_bytes = size_bytes;
  file.identity = {.modified_ns = 1, .inode = inode};
  return file;
}

TEST(FileOwnersTest, EveryFileOfASharedFolderHasOneReader) {
  const std::vector<TraceFile> root = {File("a", 5, 1), File("b", 4, 2), File("c", 3, 3), File("d", 2, 4)};
  const auto files = UniteFiles(root, {{}, {}}, {false, false});
  const auto readers = ChooseReaders(files, 2);
  ASSERT_EQ(readers.size(), 4u);
  // 5 + 2 against 4 + 3; everybody's list is the root's.
  EXPECT_EQ(readers[0], (std::pair<uint32_t, uint32_t>(0, 0)));
  EXPECT_EQ(readers[1], (std::pair<uint32_t, uint32_t>(1, 1)));
  EXPECT_EQ(readers[2], (std::pair<uint32_t, uint32_t>(1, 2)));
  EXPECT_EQ(readers[3], (std::pair<uint32_t, uint32_t>(0, 3)));
}

TEST(FileOwnersTest, FilesOfSingleNodesAreReadThereAndSharedOnesOnce) {
  const TraceFile shared = File("/shared/rank9.json", 100, 7);
  const std::vector<TraceFile> first = {File("/local/rank0.json", 10, 1), shared};
  const std::vector<TraceFile> second = {File("/local/rank1.json", 10, 1), File("/local/rank10.json", 10, 2), shared};
  const auto files = UniteFiles(first, {first, second}, {false, true});
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(files[0].file.path, "/local/rank0.json");
  EXPECT_EQ(files[1].file.path, "/local/rank1.json");
  EXPECT_EQ(files[2].file.path, "/local/rank10.json");
  EXPECT_EQ(files[3].seen_by.size(), 2u);
  const auto readers = ChooseReaders(files, 2);
  EXPECT_EQ(readers[0], (std::pair<uint32_t, uint32_t>(0, 0)));
  EXPECT_EQ(readers[1], (std::pair<uint32_t, uint32_t>(1, 0)));
  EXPECT_EQ(readers[2], (std::pair<uint32_t, uint32_t>(1, 1)));
  EXPECT_EQ(readers[3].first, 0u);  // The largest goes first, to the lower of two idle ones.
}

TEST(FileOwnersTest, FilesOfOneNameOnTwoNodesAreTwo) {
  const auto files =
      UniteFiles({File("/local/trace.json", 10, 1)}, {{}, {File("/local/trace.json", 10, 2)}}, {false, true});
  ASSERT_EQ(files.size(), 2u);
  const auto readers = ChooseReaders(files, 2);
  EXPECT_NE(readers[0].first, readers[1].first);
}

TEST(FileOwnersTest, MembersOfAnArchiveThatIsReadInOrderStayTogether) {
  std::vector<TraceFile> root;
  for (uint32_t i = 0; i < 6; ++i) {
    TraceFile member = File("job.tar.gz", 10, 1);
    member.member = "rank" + std::to_string(i) + ".json";
    member.member_idx = i;
    member.in_archive = member.in_order_only = true;
    root.push_back(member);
  }
  root.push_back(File("rank6.json", 10, 2));
  const auto readers = ChooseReaders(UniteFiles(root, {{}, {}, {}}, {false, false, false}), 3);
  std::set<uint32_t> of_archive;
  for (size_t i = 0; i < 6; ++i) of_archive.insert(readers[i].first);
  EXPECT_EQ(of_archive.size(), 1u);
  EXPECT_NE(readers[6].first, *of_archive.begin());
}

TraceFile OfRank(int32_t rank, const std::string& path, uint64_t size_bytes, uint64_t inode) {
  TraceFile file = File(path, size_bytes, inode);
  file.facts.rank = rank;
  return file;
}

TEST(FileOwnersTest, SpansAreReadWhereTheTraceOfTheirRankIs) {
  const std::vector<TraceFile> root = {OfRank(0, "rank0-a.spans", 1, 1), OfRank(0, "rank0.json", 100, 2),
                                       OfRank(1, "rank1-a.spans", 90, 3), OfRank(1, "rank1.json", 10, 4),
                                       OfRank(2, "rank2.json", 50, 5)};
  const auto readers = ChooseReaders(UniteFiles(root, {{}, {}}, {false, false}), 2);
  EXPECT_EQ(readers[0].first, readers[1].first);
  EXPECT_EQ(readers[2].first, readers[3].first);
  EXPECT_NE(readers[0].first, readers[2].first);
}

TEST(FileOwnersTest, ATraceThatAllSeeIsReadWhereItsSpansAre) {
  const TraceFile shared = OfRank(1, "/shared/rank1.json", 100, 7);
  const std::vector<TraceFile> first = {OfRank(0, "/local/rank0.spans", 10, 1), shared};
  const std::vector<TraceFile> second = {OfRank(1, "/local/rank1.spans", 10, 1), shared};
  const auto files = UniteFiles(first, {first, second}, {false, true});
  ASSERT_EQ(files.size(), 3u);
  const auto readers = ChooseReaders(files, 2);
  EXPECT_EQ(readers[1].first, 1u);
  EXPECT_EQ(readers[2].first, 1u);
}

TEST(FileOwnersTest, SpansThatNobodySeesBesideTheTraceAreReadWhereTheyAre) {
  const std::vector<TraceFile> first = {OfRank(0, "/local/rank0.json", 10, 1)};
  const std::vector<TraceFile> second = {OfRank(0, "/local/rank0.spans", 10, 2)};
  const auto files = UniteFiles(first, {first, second}, {false, true});
  const auto readers = ChooseReaders(files, 2);
  EXPECT_EQ(readers[0].first, 0u);
  EXPECT_EQ(readers[1].first, 1u);
}

}  // namespace
}  // namespace lockstep::ingest
