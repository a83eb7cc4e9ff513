#include "ingest/job/ingest_run.h"

#include <archive_entry.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "ingest/bytes/archive_for_test.h"
#include "ingest/bytes/compress_for_test.h"

namespace lockstep::ingest {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A trace of `events` operators, whose names differ from rank to rank and come in another order on each.
std::string Trace(int rank, int world_size, int events = 50, int64_t start_us = 1000000) {
  std::string text = "{\"schemaVersion\": 1, ";
  if (world_size > 0) {
    text += fmt::format("\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}}, ", rank,
                        world_size);
  }
  text += "\"traceEvents\": [\n";
  for (int i = 0; i < events; ++i) {
    text += fmt::format(
        "{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"op{}\", \"pid\": 17, \"tid\": {}, \"ts\": {}, "
        "\"dur\": 1}}{}\n",
        (i * 7 + rank) % 23, i % 3, start_us + 10 * i, i + 1 < events ? "," : "");
  }
  return text + "]}\n";
}

// Everything of a run as text, with names instead of ids and with ids as well.
std::string Dump(const model::Run& run) {
  std::string text;
  for (const model::RankTrace& trace : run.ranks) {
    text += fmt::format("rank {} window {} source {} host {} world {} events {}\n", trace.rank.value, trace.window,
                        trace.source, trace.host, trace.world_size.value_or(-1), trace.event_count);
    for (const model::Track& track : trace.tracks) {
      for (size_t i = 0; i < track.events.size(); ++i) {
        text += fmt::format("{} {} {} {} {}\n", track.thread_id, track.events.start_ns[i], track.events.duration_ns[i],
                            run.names[track.events.name[i]], track.events.name[i].value);
      }
    }
  }
  for (const auto& entry : run.ledger.entries()) {
    text +=
        fmt::format("{} {} {} {} {}\n", entry.code, entry.source, entry.rank.value_or(-1), entry.count, entry.message);
  }
  return text;
}

class IngestRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("lockstep_ingest_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, std::string_view bytes) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }
  Result<model::Run> Ingest(uint32_t threads = 2) {
    IngestOptions options;
    options.thread_count = threads;
    return IngestRun({folder_.string()}, options);
  }
  static std::vector<std::string> Codes(const model::Run& run) {
    std::vector<std::string> codes;
    for (const auto& entry : run.ledger.entries()) codes.push_back(entry.code);
    return codes;
  }

  std::filesystem::path folder_;
};

TEST_F(IngestRunTest, RanksAreReadFromFilesOfEveryKindAndSorted) {
  Write("c.json", Trace(0, 4));
  Write("a.json.gz", test::Gzip(Trace(3, 4)));
  Write("b.json.zst", test::Zstd(Trace(1, 4)));
  Write("d.tar", test::MakeArchive(test::Format::kTar, {{"x.json.gz", test::Gzip(Trace(2, 4))}}));
  auto run = Ingest();
  ASSERT_TRUE(run);
  ASSERT_EQ(run->ranks.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    const model::RankTrace& trace = run->ranks[static_cast<size_t>(i)];
    EXPECT_EQ(trace.rank.value, i);
    EXPECT_EQ(trace.event_count, 50u);
    EXPECT_EQ(trace.world_size, 4);
    EXPECT_EQ(run->names[trace.tracks[0].events.name[0]], fmt::format("op{}", i));
  }
  EXPECT_THAT(run->ranks[2].source, HasSubstr("d.tar!x.json.gz"));
  EXPECT_THAT(Codes(*run), IsEmpty());
  EXPECT_FALSE(IsPartial(*run));
}

TEST_F(IngestRunTest, TheResultDoesNotDependOnTheNumberOfThreads) {
  std::vector<test::Entry> members;
  for (int rank = 0; rank < 24; ++rank) {
    const std::string text = Trace(rank, 24, rank % 2 == 0 ? 4000 : 10);
    if (rank % 3 == 0) {
      members.push_back({fmt::format("rank{}.json", 23 - rank), text});
    } else {
      Write(fmt::format("rank{}.json.gz", rank), test::Gzip(text));
    }
  }
  Write("all.tar.gz", test::Gzip(test::MakeArchive(test::Format::kTar, members)));
  Write("config.json", "{}");
  auto one = Ingest(1);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->ranks.size(), 24u);
  const std::string expected = Dump(*one);
  for (const uint32_t threads : {2u, 7u, 60u}) {
    auto many = Ingest(threads);
    ASSERT_TRUE(many);
    EXPECT_TRUE(Dump(*many) == expected) << threads;
  }
}

TEST_F(IngestRunTest, WhatIsNoTraceIsRefusedByNameAndTheRestIsRead) {
  Write("rank0.json", Trace(0, 1));
  const std::string other = Write("execution.json", R"({"schema": "1.0.2", "nodes": []})");
  for (const std::vector<std::string>& paths : {std::vector<std::string>{folder_.string()},
                                                std::vector<std::string>{folder_.string() + "/rank0.json", other}}) {
    auto run = IngestRun(paths, {});
    ASSERT_TRUE(run);
    EXPECT_EQ(run->ranks.size(), 1U);
    ASSERT_THAT(Codes(*run), ElementsAre("not_a_trace"));
    EXPECT_EQ(run->ledger.entries()[0].severity, model::Severity::kError);
    EXPECT_EQ(run->ledger.entries()[0].source, other);
    EXPECT_NE(run->ledger.entries()[0].advice, "");
    EXPECT_TRUE(IsPartial(*run));
  }
}

TEST_F(IngestRunTest, WhatRunWithStagesLeavesBesideItsSpansIsNoDamage) {
  Write("rank0.json", Trace(0, 1));
  Write("summary.json", "{\n  \"schema\": \"lockstep.stages/1\",\n  \"partial\": false\n}\n");
  auto run = Ingest();
  ASSERT_TRUE(run);
  EXPECT_EQ(run->ranks.size(), 1U);
  EXPECT_THAT(Codes(*run), IsEmpty());
  EXPECT_TRUE(run->stages == nullptr);
  Write("summary.json", "{}");  // Of somebody else.
  run = Ingest();
  ASSERT_TRUE(run);
  EXPECT_THAT(Codes(*run), ElementsAre("not_a_trace"));
}

TEST_F(IngestRunTest, NotOneTraceIsAnError) {
  Write("a.json", "{}");
  Write("b.json", "");
  auto run = Ingest();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, ErrorCode::kCorruptData);
  EXPECT_THAT(run.error().message, HasSubstr("none of 2 files"));
  auto single = IngestRun({folder_.string() + "/a.json"}, {});
  ASSERT_FALSE(single);
  EXPECT_EQ(single.error().file, folder_.string() + "/a.json");
}

TEST_F(IngestRunTest, FilesThatFailLeaveTheOthers) {
  Write("rank0.json", Trace(0, 3));
  Write("rank1.json.gz", test::Gzip(Trace(1, 3)).substr(0, 12));
  Write("rank2.json.bz2", "BZh91AY&SY some data");
  auto run = Ingest();
  ASSERT_TRUE(run);
  EXPECT_EQ(run->ranks.size(), 1u);
  EXPECT_THAT(Codes(*run), ElementsAre("unreadable_file", "unsupported_compression", "missing_ranks"));
  EXPECT_TRUE(IsPartial(*run));
}

TEST_F(IngestRunTest, ACutGzipIsReadToTheCut) {
  const std::string packed = test::Gzip(Trace(0, 1, 5000));
  Write("rank0.json.gz", packed.substr(0, packed.size() * 3 / 4));
  auto run = Ingest();
  ASSERT_TRUE(run);
  EXPECT_GT(run->ranks[0].event_count, 2500u);
  EXPECT_TRUE(IsPartial(*run));
  EXPECT_EQ(run->ledger.entries()[0].rank, 0);
}

TEST_F(IngestRunTest, ABombStopsAtTheLimitThatWasSet) {
  Write("rank0.json.gz", test::Gzip(Trace(0, 2, 10)));
  Write("rank1.json.gz", test::Gzip(std::string(1000000, ' ')));
  IngestOptions options;
  options.limits.max_output_bytes = 100000;
  auto run = IngestRun({folder_.string()}, options);
  ASSERT_TRUE(run);
  EXPECT_THAT(Codes(*run), Contains("limit_exceeded"));
}

TEST_F(IngestRunTest, WindowsComeAfterEachOther) {
  Write("step1/rank0.json", Trace(0, 2, 50, 1000000));
  Write("step1/rank1.json", Trace(1, 2, 50, 1000100));
  Write("step2/rank0.json", Trace(0, 2, 50, 9000000));
  Write("step2/rank1.json", Trace(1, 2, 50, 9000100));
  auto run = Ingest();
  ASSERT_TRUE(run);
  std::vector<std::pair<int, int>> places;
  for (const auto& trace : run->ranks) places.emplace_back(trace.window, trace.rank.value);
  EXPECT_THAT(places, ElementsAre(std::pair(0, 0), std::pair(0, 1), std::pair(1, 0), std::pair(1, 1)));
}

TEST_F(IngestRunTest, ProgressEndsAtTheTotals) {
  Write("rank0.json.gz", test::Gzip(Trace(0, 2)));
  Write("rank1.json", Trace(1, 2));
  Write("config.json", "{}");
  IngestOptions options;
  IngestProgress last;
  options.on_progress = [&](const IngestProgress& progress) {
    EXPECT_GE(progress.consumed_bytes, last.consumed_bytes);
    last = progress;
  };
  ASSERT_TRUE(IngestRun({folder_.string()}, options));
  EXPECT_EQ(last.file_count, 3u);
  EXPECT_EQ(last.finished_file_count, 3u);
  EXPECT_EQ(last.event_count, 100u);
  EXPECT_EQ(last.consumed_bytes, last.total_bytes);
  EXPECT_GT(last.json_bytes, last.total_bytes);
}

TEST_F(IngestRunTest, ACancelledIngestEndsWithoutARun) {
  Write("rank0.json", Trace(0, 1));
  const std::atomic<bool> cancelled = true;
  IngestOptions options;
  options.cancelled = &cancelled;
  const auto run = IngestRun({folder_.string()}, options);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, ErrorCode::kCancelled);
}

TEST_F(IngestRunTest, AMissingPathIsNotFound) {
  auto run = IngestRun({(folder_ / "absent").string()}, {});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace lockstep::ingest
