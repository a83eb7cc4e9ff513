#include "ingest/flight_recorder/json_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/flight_recorder/dump_for_test.h"
#include "ingest/flight_recorder/record_for_test.h"

namespace lockstep::ingest {
namespace {

using evidence::FlightRecord;
using evidence::kNotRecorded;
using test::Dump;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

FlightRecord ReadJson(const std::string& bytes) {
  auto record = test::One(ReadJsonDump(bytes));
  EXPECT_TRUE(record.has_value()) << record.error().ToString();
  return record ? std::move(*record) : FlightRecord{};
}

Dump FiveOperations() {
  Dump dump;
  dump.groups = {{"0", "default_pg", "[0, 1]"}};
  dump.progress = {{0, {15, -1, 14}}};
  for (int64_t i = 0; i < 5; ++i) dump.operations.emplace_back().record_id = 100 + i;
  return dump;
}

TEST(JsonDumpTest, ACutAnywhereLeavesWhatWasWhole) {
  const std::string bytes = JsonOf(FiveOperations());
  const FlightRecord whole = ReadJson(bytes);
  size_t most = 0;
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto record = test::One(ReadJsonDump(std::string_view(bytes).substr(0, length)));
    if (!record) {
      EXPECT_EQ(record.error().code, ErrorCode::kCorruptData) << length;
      EXPECT_EQ(most, 0u);
      continue;
    }
    EXPECT_TRUE(record->truncated);
    EXPECT_THAT(record->notes, IsEmpty()) << length;
    ASSERT_GE(record->entries.size(), most) << length;
    most = record->entries.size();
    for (size_t i = 0; i < most; ++i) {
      EXPECT_EQ(test::TextOf(*record, record->entries[i]), test::TextOf(whole, whole.entries[i])) << length;
    }
  }
  EXPECT_EQ(most, 5u);
}

TEST(JsonDumpTest, ANumberThatWasCutIsNotTaken) {
  const FlightRecord record = ReadJson("{\"version\":\"2.10\",\"pg_status\":{\"0\":{\"last_enqueued_collective\":12");
  EXPECT_TRUE(record.truncated);
  for (const auto& group : record.groups) EXPECT_EQ(group.last_enqueued, kNotRecorded);
}

TEST(JsonDumpTest, DepthIsBounded) {
  const auto record = test::One(ReadJsonDump("{\"entries\":" + std::string(1000, '[')));
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().code, ErrorCode::kLimitExceeded);
  EXPECT_THAT(record.error().message, HasSubstr("nests deeper than 64 levels"));
}

TEST(JsonDumpTest, DamageInTheMiddleIsAnErrorWithItsPlace) {
  const auto record = test::One(ReadJsonDump("{\"version\":\"2.10\",\"entries\":[{\"record_id\":1,}]}"));
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().code, ErrorCode::kCorruptData);
  EXPECT_EQ(record.error().byte_offset, 44u);
}

TEST(JsonDumpTest, WrongTypesAreNotedAndUnknown) {
  const FlightRecord record = ReadJson(
      "{\"version\":2,\"entries\":[7,{\"record_id\":\"x\",\"state\":\"lost\",\"frames\":{},\"input_sizes\":[1],"
      "\"time_created_ns\":18446744073709551615,\"duration_ms\":NaN}]}");
  ASSERT_EQ(record.entries.size(), 1u);
  EXPECT_EQ(record.entries[0].record_id, kNotRecorded);
  EXPECT_EQ(record.entries[0].created_unix_ns, kNotRecorded);
  EXPECT_EQ(record.entries[0].duration_ns, kNotRecorded);
  EXPECT_THAT(record.notes, SizeIs(8));
}

TEST(JsonDumpTest, EscapedTextsAreTheTextsTheyMean) {
  const FlightRecord record =
      ReadJson("{\"entries\":[{\"profiling_name\":\"\\u00e9\\ud83d\\ude00\",\"state\":\"sch\\u0065duled\"}]}");
  EXPECT_EQ(record.texts[record.entries[0].operation], "\u00e9\U0001F600");
  EXPECT_EQ(record.entries[0].state, evidence::EntryState::kScheduled);
}

TEST(JsonDumpTest, FramesAreReadWhereAWriterAddsThem) {
  const FlightRecord record =
      ReadJson("{\"entries\":[{\"frames\":[{\"filename\":\"a.py\",\"line\":3,\"name\":\"f\"}],\"record_id\":0}]}");
  EXPECT_EQ(test::StackOf(record, record.entries[0]), "f a.py:3;");
}

}  // namespace
}  // namespace lockstep::ingest
