#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ingest/span_follow/span_follower.h"

namespace lockstep::ingest::span_follow {
namespace {

/// A file that nobody has written: chunks of 64 KiB, whose records `slots` makes.
class MadeUpFile {
 public:
  using Slot = span_trace::Slot;
  static constexpr size_t kSlots = (span_trace::kMostChunkBytes - sizeof(span_trace::ChunkHeader)) / sizeof(Slot);
  static Slot Make(span_trace::RecordKind kind, uint64_t tick, uint64_t payload) {
    return {tick, kind | uint64_t{1} << 4 | payload << 24};
  }

  MadeUpFile(size_t chunk_count, std::function<std::vector<Slot>(size_t chunk)> slots)
      : chunk_count_(chunk_count), slots_(std::move(slots)) {}

  SpanFollower Follow() {
    auto opened =
        SpanFollower::Open([this](uint64_t offset, char* to, size_t bytes) { return Read(offset, to, bytes); });
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }
  uint64_t read_bytes = 0;
  bool is_one_threads = false;  ///< Its newest chunk first, which it writes into, then copies of those before.
  /// Of each chunk; with one, ticks are those of a counter. The file's own is that of chunk 0.
  std::function<span_trace::Anchor(size_t chunk)> anchor;

 private:
  size_t Read(uint64_t offset, char* to, size_t bytes) {
    if (offset < span_trace::kHeaderBytes) {
      span_trace::Header header = {};
      std::memcpy(header.magic, span_trace::kMagic.data(), span_trace::kMagic.size());
      header.version = span_trace::kVersion;
      header.clock = anchor ? span_trace::ClockKind::kTimeStampCounter : span_trace::ClockKind::kMonotonic;
      if (anchor) header.begin = anchor(0);
      header.used_bytes = span_trace::kHeaderBytes + chunk_count_ * span_trace::kMostChunkBytes;
      return Copy(&header, sizeof(header), offset, to, bytes);
    }
    const size_t chunk = (offset - span_trace::kHeaderBytes) / span_trace::kMostChunkBytes;
    if (chunk >= chunk_count_) return 0;
    if (chunk != held_ || bytes_.empty()) {
      span_trace::ChunkHeader header = {};
      header.magic = span_trace::kChunkMagic;
      header.size_bytes = span_trace::kMostChunkBytes;
      header.kind = span_trace::kRecordChunk;
      header.chunk_number = is_one_threads && chunk > 0 ? chunk : is_one_threads ? chunk_count_ : chunk + 1;
      header.is_copy = is_one_threads && chunk > 0 ? 1 : 0;
      if (anchor) header.anchor = anchor(chunk);
      const std::vector<Slot> slots = slots_(chunk);
      bytes_.assign(span_trace::kMostChunkBytes, '\0');
      std::memcpy(bytes_.data(), &header, sizeof(header));
      std::memcpy(bytes_.data() + sizeof(header), slots.data(), slots.size() * sizeof(Slot));
      held_ = chunk;
    }
    read_bytes += bytes;
    return Copy(bytes_.data(), bytes_.size(), (offset - span_trace::kHeaderBytes) % span_trace::kMostChunkBytes, to,
                bytes);
  }
  static size_t Copy(const void* from, size_t size, size_t offset, char* to, size_t bytes) {
    const size_t count = offset >= size ? 0 : std::min(bytes, size - offset);
    std::memcpy(to, static_cast<const char*>(from) + offset, count);
    return count;
  }

  const size_t chunk_count_;
  const std::function<std::vector<Slot>(size_t chunk)> slots_;
  size_t held_ = 0;
  std::string bytes_;
};

TEST(MadeUpSpanFileTest, AReadingTakesABoundedPartAndTheNextGoesOnWithIt) {
  constexpr size_t kChunks = 300;
  MadeUpFile file(kChunks, [](size_t chunk) {
    return std::vector<span_trace::Slot>(MadeUpFile::kSlots, MadeUpFile::Make(span_trace::kSpan, chunk, 5));
  });
  SpanFollower follower = file.Follow();
  size_t record_count = 0;
  for (int round = 0; round < 5; ++round) {
    bool has_more = true;
    for (int reading = 0; has_more; ++reading) {
      ASSERT_LT(reading, 4);
      file.read_bytes = 0;
      const auto followed = follower.ReadOn();
      ASSERT_TRUE(followed);
      record_count += followed->record_count;
      EXPECT_EQ(followed->missed_count, 0u);
      EXPECT_LE(followed->spans.size() * sizeof(span_trace::Slot), size_t{8} << 20);
      EXPECT_LE(file.read_bytes, size_t{18} << 20);  // Each twice, and headers.
      has_more = followed->has_more;
    }
    EXPECT_EQ(record_count, kChunks * MadeUpFile::kSlots);
  }
}

TEST(MadeUpSpanFileTest, AThreadsRecordsComeInOrderHoweverManyReadingsTheyTake) {
  constexpr size_t kChunks = 300;
  MadeUpFile file(kChunks, [](size_t chunk) {
    const uint64_t number = chunk == 0 ? kChunks : chunk;
    return std::vector<span_trace::Slot>{MadeUpFile::Make(span_trace::kCounterInteger, number, number)};
  });
  file.is_one_threads = true;
  SpanFollower follower = file.Follow();
  std::vector<double> values;
  for (bool has_more = true; has_more;) {
    const auto followed = follower.ReadOn();
    ASSERT_TRUE(followed);
    for (const auto& counter : followed->counters) values.push_back(counter.value);
    has_more = followed->has_more;
  }
  EXPECT_EQ(values.size(), kChunks);
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  EXPECT_EQ(values.back(), kChunks);
}

// A killed job's file had steps that touch by the counter and overlapped by a rounded nanosecond.
TEST(MadeUpSpanFileTest, StepsThatTouchDoNotOverlapHoweverTheClocksWobble) {
  constexpr size_t kChunks = 300;
  constexpr uint64_t kStepTicks = 30'001;  // Of a counter of 3 GHz.
  constexpr int64_t kWobbleNs = 5'000;
  MadeUpFile file(kChunks, [](size_t chunk) {
    std::vector<span_trace::Slot> slots;
    for (uint64_t step = 2 * chunk; step < 2 * chunk + 2; ++step) {
      slots.push_back(MadeUpFile::Make(span_trace::kStep, step * kStepTicks, kStepTicks));
      slots.push_back({step, 0});
    }
    return slots;
  });
  file.anchor = [](size_t chunk) {
    const uint64_t tick = 2 * chunk * kStepTicks + 100;
    const auto since_ns = static_cast<int64_t>(tick / 3);
    const int64_t wobble_ns = chunk % 2 == 0 ? kWobbleNs : -kWobbleNs;
    return span_trace::Anchor{tick, since_ns, int64_t{1'800'000'000'000'000'000} + since_ns + wobble_ns, 10};
  };
  SpanFollower follower = file.Follow();
  std::vector<FollowedStep> steps;
  size_t reading_count = 0;
  for (bool has_more = true; has_more; ++reading_count) {
    const auto followed = follower.ReadOn();
    ASSERT_TRUE(followed);
    steps.insert(steps.end(), followed->steps.begin(), followed->steps.end());
    has_more = followed->has_more;
  }
  EXPECT_GT(reading_count, 2u);
  ASSERT_EQ(steps.size(), 2 * kChunks);
  for (size_t i = 1; i < steps.size(); ++i) {
    const int64_t gap_ns = steps[i].start_ns - (steps[i - 1].start_ns + steps[i - 1].duration_ns);
    EXPECT_GE(gap_ns, 0) << i;
    EXPECT_LE(gap_ns, 2 * kWobbleNs) << i;
  }
}

TEST(MadeUpSpanFileTest, TimesOfAWrongClockHaveAnEnd) {
  constexpr uint64_t kTicks = 100;  // Of which the file says that each takes centuries.
  MadeUpFile file(2, [](size_t chunk) {
    std::vector<span_trace::Slot> slots = {MadeUpFile::Make(span_trace::kSpan, 7 * kTicks, kTicks)};
    for (uint64_t step = 4 * chunk; step < 4 * chunk + 4; ++step) {
      slots.push_back(MadeUpFile::Make(span_trace::kStep, step * kTicks, kTicks));
      slots.push_back({step, 0});
    }
    return slots;
  });
  file.anchor = [](size_t chunk) {
    return chunk == 0 ? span_trace::Anchor{} : span_trace::Anchor{1, INT64_MAX, INT64_MAX, 1};
  };
  SpanFollower follower = file.Follow();
  const auto followed = follower.ReadOn();
  ASSERT_TRUE(followed);
  ASSERT_EQ(followed->steps.size(), 8u);
  ASSERT_EQ(followed->spans.size(), 2u);
  const auto ends = [](const auto& span) { return span.start_ns < 0 || span.duration_ns <= INT64_MAX - span.start_ns; };
  EXPECT_TRUE(std::all_of(followed->spans.begin(), followed->spans.end(), ends));
  EXPECT_TRUE(std::all_of(followed->steps.begin(), followed->steps.end(), ends));
}

TEST(MadeUpSpanFileTest, SpansThatNeverEndGiveWayToNewerOnes) {
  constexpr size_t kOpenChunks = 20;  // More than are kept.
  MadeUpFile file(kOpenChunks + 1, [](size_t chunk) {
    using enum span_trace::RecordKind;
    if (chunk < kOpenChunks) {
      return std::vector<span_trace::Slot>(MadeUpFile::kSlots, MadeUpFile::Make(kSpan, chunk, span_trace::kOpen));
    }
    const uint64_t step = (kOpenChunks + 1) << span_trace::kSlotBits;
    return std::vector<span_trace::Slot>{
        MadeUpFile::Make(kStep, 100, span_trace::kOpen), {7, 0}, MadeUpFile::Make(kEnd, 150, 0), {step, 0}};
  });
  SpanFollower follower = file.Follow();
  const auto followed = follower.ReadOn();
  ASSERT_TRUE(followed);
  ASSERT_EQ(followed->steps.size(), 1u);
  EXPECT_EQ(followed->steps[0].number, 7);
  EXPECT_EQ(followed->steps[0].duration_ns, 50);
  EXPECT_LE(follower.open_count(), 1u << 16);
  EXPECT_EQ(followed->missed_count + follower.open_count(), kOpenChunks * MadeUpFile::kSlots);
}

TEST(MadeUpSpanFileTest, WhatIsNoSpanTraceIsRefused) {
  const std::string text = "no spans in here";
  const auto opened = SpanFollower::Open([&](uint64_t offset, char* to, size_t bytes) -> size_t {
    if (offset >= text.size()) return 0;
    const size_t count = std::min(bytes, text.size() - static_cast<size_t>(offset));
    std::memcpy(to, text.data() + offset, count);
    return count;
  });
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kCorruptData);
}

}  // namespace
}  // namespace lockstep::ingest::span_follow
