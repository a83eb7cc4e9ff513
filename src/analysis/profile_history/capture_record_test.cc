#include "analysis/profile_history/capture_record.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/finding.h"

namespace lockstep::profile_history {
namespace {

CaptureRecord Full() {
  CaptureRecord record{.capture = "20261122T010623Z-2", .time_unix_ns = 1'790'000'000'000'000'000, .job_id = "42"};
  record.world_size = 2;
  record.outcome = Outcome::kPartial;
  record.reason = "n1: does not \"answer\"";
  record.took_ns = 7'000'000'000;
  record.step_count = 3;
  record.figures = {{.name = "step", .unit = "ns", .value = 24.5e6},
                    {.name = "own_time_ratio", .unit = "ratio", .value = 1.25, .whole = 0, .rank = 1},
                    {.name = "busbw:all_reduce 4096", .unit = "bytes_per_s", .value = 1e9}};
  record.own_ns = {{0, 20'000'000}, {1, 25'000'000}};
  record.findings.resize(1);
  record.findings[0] = {.id = "straggler",
                        .severity = analysis::FindingSeverity::kWarning,
                        .ranks = {1},
                        .title = "Rank 1 keeps the others waiting",
                        .evidence = {},
                        .advice = {},
                        .gain_ns_per_step = 5'000'000,
                        .gain_ratio = {}};
  return record;
}

TEST(CaptureRecordTest, ALineIsReadAsItWasWritten) {
  const std::string line = WriteRecord(Full());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Result<CaptureRecord> read = ReadRecord(line);
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(WriteRecord(*read), line);
  EXPECT_EQ(read->outcome, Outcome::kPartial);
  ASSERT_EQ(read->figures.size(), 3u);
  EXPECT_EQ(read->figures[1].rank, 1);
  EXPECT_EQ(read->figures[0].rank, std::nullopt);
  EXPECT_TRUE(read->figures[2].is_worse_when_less());
  EXPECT_EQ(read->own_ns, Full().own_ns);
  ASSERT_EQ(read->findings.size(), 1u);
  EXPECT_EQ(read->findings[0].severity, analysis::FindingSeverity::kWarning);
  EXPECT_EQ(read->findings[0].gain_ns_per_step, 5'000'000);
}

TEST(CaptureRecordTest, ALineThatWasCutOffAnywhereIsAnError) {
  const std::string line = WriteRecord(Full());
  for (size_t size = 0; size < line.size(); ++size) EXPECT_FALSE(ReadRecord(line.substr(0, size))) << size;
}

TEST(CaptureRecordTest, WhatIsNotARecordIsRefused) {
  const std::string sound = WriteRecord(Full());
  const auto with = [&](const std::string& old, const std::string& other) {
    std::string line = sound;
    const size_t at = line.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return line.replace(at, old.size(), other);
  };
  for (const std::string& line : {
           std::string("{}"),
           std::string("[]"),
           std::string("null"),
           std::string(100'000, '['),
           with("lockstep.profile/1", "lockstep.profile/2"),
           with("20261122T010623Z-2", "../../etc"),  // it names a folder
           with("20261122T010623Z-2", ""),
           with("\"partial\"", "\"fine\""),
           with("\"world_size\":2", "\"world_size\":-2"),
           with("\"figures\":[", "\"figures\":[7,"),
           with("24500000.0", "1e308"),
           with("24500000.0", "\"much\""),
           with("[0,20000000]", "[0,20000000,1]"),
           with("[0,20000000]", "[-1,20000000]"),
           with("own_time_ratio", "step"),
           with("\"ranks\":[1]", "\"ranks\":[4294967296]"),
       }) {
    EXPECT_FALSE(ReadRecord(line)) << line;
  }
  EXPECT_EQ(ReadRecord(std::string(kMostLineBytes + 1, ' ')).error().code, ErrorCode::kLimitExceeded);
}

TEST(CaptureRecordTest, TextsAreCutBetweenCharactersAndMadeValid) {
  CaptureRecord record = Full();
  record.job_id = std::string(kMostNameBytes - 1, 'x') + "é";
  record.reason = "\xFF\xFE";
  const Result<CaptureRecord> read = ReadRecord(WriteRecord(record));
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->job_id, std::string(kMostNameBytes - 1, 'x'));
  EXPECT_EQ(read->reason, "\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace lockstep::profile_history
