#include "present/export/tensorboard/event_file.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <tfevents.pb.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace lockstep::tensorboard {
namespace {

uint64_t Number(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

class EventFileTest : public testing::Test {
 protected:
  EventFileTest() {
    char name[] = "/tmp/lockstep_events_XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~EventFileTest() override { std::filesystem::remove_all(folder_); }

  // Reads the file as its readers do, checksums and all.
  std::vector<tfevents::Event> Read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream content;
    content << in.rdbuf();
    const std::string bytes = content.str();
    std::vector<tfevents::Event> events;
    for (size_t at = 0; at < bytes.size();) {
      const std::string_view length_bytes = std::string_view(bytes).substr(at, 8);
      const size_t length = Number(length_bytes);
      EXPECT_EQ(Number(std::string_view(bytes).substr(at + 8, 4)), MaskedCrc(length_bytes));
      const std::string_view data = std::string_view(bytes).substr(at + 12, length);
      EXPECT_EQ(Number(std::string_view(bytes).substr(at + 12 + length, 4)), MaskedCrc(data));
      EXPECT_TRUE(events.emplace_back().ParseFromArray(data.data(), static_cast<int>(data.size())));
      at += length + 16;
    }
    return events;
  }

  std::string folder_;
};

// CRC-32C of "123456789" is E3069283 (its check value); the mask is TensorBoard's.
TEST(MaskedCrcTest, IsTheRotatedCheckValueAndAConstant) {
  const uint32_t crc = 0xE3069283u;
  EXPECT_EQ(MaskedCrc("123456789"), ((crc >> 15) | (crc << 17)) + 0xA282EAD8u);
}

TEST(FrameRecordTest, PutsLengthAndChecksumsAroundTheBytes) {
  const std::string record = FrameRecord("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(Number(record.substr(0, 8)), 3u);
  EXPECT_EQ(record.substr(12, 3), "abc");
}

TEST_F(EventFileTest, BeginsWithItsVersionAndKeepsStepsAndTimes) {
  EventFile file(100.5);
  file.AddScalar("step/span_ms", "what it is", 7, 101.25, 12.5);
  file.AddScalar("step/span_ms", "what it is", 8, 102.25, 13.5);
  const auto path = file.Save(folder_);
  ASSERT_TRUE(path) << path.error().ToString();
  const auto events = Read(*path);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[0].wall_time(), 100.5);
  EXPECT_EQ(events[1].step(), 7);
  EXPECT_EQ(events[1].wall_time(), 101.25);
  EXPECT_EQ(events[1].summary().value(0).tag(), "step/span_ms");
  EXPECT_EQ(events[1].summary().value(0).simple_value(), 12.5f);
  EXPECT_EQ(events[1].summary().value(0).metadata().summary_description(), "what it is");
  EXPECT_FALSE(events[2].summary().value(0).has_metadata());
}

TEST_F(EventFileTest, HistogramsCountEveryValueBetweenTheLeastAndTheLargest) {
  EventFile file(0);
  std::vector<double> values;
  for (int i = 0; i <= 300; ++i) values.push_back(i);
  file.AddHistogram("h", "", 0, 0, values);
  file.AddHistogram("same", "", 0, 0, {4, 4, 4});
  file.AddHistogram("none", "", 0, 0, {});
  const auto path = file.Save(folder_);
  ASSERT_TRUE(path);
  const auto events = Read(*path);
  ASSERT_EQ(events.size(), 3u);
  const tfevents::HistogramProto& histogram = events[1].summary().value(0).histo();
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 300);
  EXPECT_EQ(histogram.num(), 301);
  EXPECT_EQ(histogram.sum(), 45150);
  ASSERT_EQ(histogram.bucket_size(), 30);
  ASSERT_EQ(histogram.bucket_limit_size(), 30);
  EXPECT_EQ(histogram.bucket_limit(29), 300);
  double total = 0;
  for (const double count : histogram.bucket()) total += count;
  EXPECT_EQ(total, 301);
  EXPECT_EQ(events[2].summary().value(0).histo().bucket_size(), 1);
}

TEST_F(EventFileTest, WhatIsNotFiniteIsNotWritten) {
  EventFile file(0);
  file.AddScalar("a", "", 0, 0, std::nan(""));
  file.AddScalar("a", "", 0, 0, std::numeric_limits<double>::infinity());
  file.AddScalar("a", "", 0, 0, 1e300);  // more than the format's float holds
  file.AddHistogram("h", "", 0, 0, {std::nan("")});
  EXPECT_EQ(file.scalar_count(), 0u);
  EXPECT_EQ(file.histogram_count(), 0u);
}

TEST_F(EventFileTest, EverySaveIsANewFileAndNothingElseIsLeft) {
  const EventFile file(0);
  EXPECT_FALSE(HoldsEvents(folder_));
  const auto first = file.Save(folder_ + "/rank0");
  const auto second = file.Save(folder_ + "/rank0");
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_TRUE(HoldsEvents(folder_ + "/rank0"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ + "/rank0"), {}), 2);
}

TEST_F(EventFileTest, ALogIsWholeAfterEveryLook) {
  auto log = EventLog::Create(folder_ + "/rank0", 100.5);
  ASSERT_TRUE(log) << log.error().ToString();
  EXPECT_EQ(Read(log->path()).size(), 1u);
  ASSERT_TRUE(log->Append(7, 101, {{"a", "what a is", 1.5}, {"b", "what b is", std::nan("")}}));
  auto events = Read(log->path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  ASSERT_EQ(events[1].summary().value_size(), 1);
  EXPECT_EQ(events[1].summary().value(0).metadata().summary_description(), "what a is");
  ASSERT_TRUE(log->Append(8, 102, {{"a", "what a is", 2.5}, {"b", "what b is", 3}}));
  ASSERT_TRUE(log->Append(9, 103, {{"b", "what b is", std::nan("")}}));
  events = Read(log->path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].step(), 8);
  EXPECT_FALSE(events[2].summary().value(0).has_metadata());
  EXPECT_TRUE(events[2].summary().value(1).has_metadata());
  EXPECT_EQ(log->scalar_count(), 3u);
  EXPECT_EQ(log->byte_count(), std::filesystem::file_size(log->path()));
  const auto second = EventLog::Create(folder_ + "/rank0", 104);
  ASSERT_TRUE(second);
  EXPECT_NE(second->path(), log->path());
}

TEST_F(EventFileTest, ALogWhoseFileIsGoneIsAnError) {
  auto log = EventLog::Create(folder_, 0);
  ASSERT_TRUE(log);
  std::filesystem::remove(log->path());
  EXPECT_FALSE(log->Append(1, 1, {{"a", "", 1}}));
}

TEST_F(EventFileTest, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(folder_ + "/file") << "x";
  EXPECT_FALSE(EventFile(0).Save(folder_ + "/file/rank0"));
}

}  // namespace
}  // namespace lockstep::tensorboard
