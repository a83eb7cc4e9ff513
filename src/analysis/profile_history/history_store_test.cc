#include "analysis/profile_history/history_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_folder.h"

namespace lockstep::profile_history {
namespace {

namespace fs = std::filesystem;

CaptureRecord RecordOf(const std::string& capture) {
  CaptureRecord record{.capture = capture, .time_unix_ns = 1, .job_id = "7"};
  record.figures = {{.name = "step", .unit = "ns", .value = 1e6}};
  return record;
}

void WriteBytes(const std::string& path, size_t bytes) { std::ofstream(path) << std::string(bytes, 'x'); }

class HistoryStoreTest : public testing::Test {
 protected:
  std::string folder() const { return scratch_.File("kept"); }
  void Append(const std::string& text) { std::ofstream(folder() + "/profile.jsonl", std::ios::app) << text; }

 private:
  TemporaryFolder scratch_;
};

TEST_F(HistoryStoreTest, WhatWasAppendedIsThereAgainAndTornLinesAreSkipped) {
  {
    Result<HistoryStore> store = HistoryStore::Open(folder());
    ASSERT_TRUE(store) << store.error().ToString();
    EXPECT_TRUE(store->past().empty());
    ASSERT_TRUE(store->Append(RecordOf("20260101T000000Z")));
  }
  Append("no json\n\n" + WriteRecord(RecordOf("20260101T000001Z")).substr(0, 50));
  {
    Result<HistoryStore> store = HistoryStore::Open(folder());
    ASSERT_TRUE(store);
    EXPECT_EQ(store->past().size(), 1u);
    EXPECT_EQ(store->skipped_line_count(), 2u);
    ASSERT_TRUE(store->Append(RecordOf("20260101T000002Z"))) << "on a line of its own";
  }
  Append(std::string(kMostLineBytes + 10, ' ') + "\n" + WriteRecord(RecordOf("20260101T000003Z")) + "\n");
  Result<HistoryStore> store = HistoryStore::Open(folder());
  ASSERT_TRUE(store);
  ASSERT_EQ(store->past().size(), 3u);
  EXPECT_EQ(store->past().back().capture, "20260101T000003Z");
  EXPECT_EQ(store->skipped_line_count(), 3u);
}

TEST_F(HistoryStoreTest, OneProgramHasItAtATime) {
  Result<HistoryStore> store = HistoryStore::Open(folder());
  ASSERT_TRUE(store);
  const Result<HistoryStore> second = HistoryStore::Open(folder());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(HistoryStoreTest, CapturesOfOneSecondHaveNamesOfTheirOwn) {
  Result<HistoryStore> store = HistoryStore::Open(folder());
  ASSERT_TRUE(store);
  EXPECT_EQ(*store->Begin(0), "19700101T000000Z");
  EXPECT_EQ(*store->Begin(1), "19700101T000000Z-2");
  EXPECT_EQ(*store->Begin(2), "19700101T000000Z-3");
}

TEST_F(HistoryStoreTest, TheOldestTracesGoFirstThenReports) {
  Result<HistoryStore> store = HistoryStore::Open(folder());
  ASSERT_TRUE(store);
  std::vector<std::string> names;
  for (int64_t i = 0; i < 4; ++i) {
    names.push_back(*store->Begin(i * 1'000'000'000));
    WriteBytes(store->TraceFolder(names.back()) + "/rank0.json.gz", 10'000);
    WriteBytes(store->ReportFile(names.back()), 1'000);
  }
  const uint64_t history = store->KeepWithin(1 << 20).history;
  EXPECT_EQ(store->KeepWithin(44'000 + history).total(), 44'000 + history) << "it just fits";
  const KeptBytes two = store->KeepWithin(30'000 + history);
  EXPECT_EQ(two.traces, 20'000u);
  EXPECT_EQ(two.reports, 4'000u);
  EXPECT_FALSE(store->HasTraces(names[1]));
  EXPECT_TRUE(store->HasTraces(names[2]));
  const KeptBytes few = store->KeepWithin(2'500 + history);
  EXPECT_EQ(few.traces, 0u);
  EXPECT_EQ(few.reports, 2'000u);
  EXPECT_FALSE(fs::exists(store->ReportFile(names[1])));
  EXPECT_TRUE(fs::exists(store->ReportFile(names[2])));
  EXPECT_FALSE(fs::exists(folder() + "/captures/" + names[0])) << "nothing is left in it";
}

TEST_F(HistoryStoreTest, WhatSomebodyElsePutThereIsLeftAlone) {
  Result<HistoryStore> store = HistoryStore::Open(folder());
  ASSERT_TRUE(store);
  const std::string outside = folder() + "/outside";
  fs::create_directory(outside);
  WriteBytes(outside + "/precious", 1'000);
  fs::create_directory_symlink(outside, folder() + "/captures/20260101T000000Z");
  fs::create_directory(folder() + "/captures/notes");
  WriteBytes(folder() + "/captures/notes/mine.html", 1'000);
  store->KeepWithin(0);
  EXPECT_TRUE(fs::exists(outside + "/precious"));
  EXPECT_TRUE(fs::exists(folder() + "/captures/notes/mine.html"));
}

}  // namespace
}  // namespace lockstep::profile_history
