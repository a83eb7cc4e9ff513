#include "ingest/span_follow/span_follower.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <lockstep/trace.hpp>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "base/temporary_folder.h"
#include "base/unique_fd.h"

namespace lockstep::ingest::span_follow {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

/// What passes between the test and the process that records.
struct Shared {
  std::atomic<int> stage{0};  ///< What the child may do next.
  std::atomic<int> done{0};   ///< What it has done.

  void Await(int wanted) {
    while (stage < wanted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

/// A process that records, and whoever follows its file.
class SpanFollowerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const page = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    shared_ = new (page) Shared();
    ASSERT_TRUE(scratch_.made());
  }
  void TearDown() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::munmap(shared_, sizeof(Shared));
  }

  /// `work` runs in a process of its own, each stage when it is let.
  void Start(const std::function<void(Shared*)>& work, const std::map<std::string, std::string>& environment = {}) {
    child_ = ::fork();
    if (child_ != 0) return;
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::setenv("RANK", "2", 1);
    lockstep_trace_start(folder_.c_str());
    work(shared_);
    std::exit(0);
  }
  void Let(int stage) {
    shared_->stage = stage;
    while (shared_->done < stage) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void AwaitEnd() {
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }

  /// Reads until the file says that it has ended, and lets the recording process go on by `let` after each reading.
  template <typename Let>
  Followed FollowToItsEnd(uint64_t* missed, const Let& let) {
    Followed last;
    // Bounds the wait for a process that has died: nothing new is looked for a hundred seconds at least.
    for (int idle = 0; !last.has_ended && idle < 100'000;) {
      last = ReadOn();
      *missed += last.missed_count;
      let();
      if (last.record_count > 0) continue;
      ++idle;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return last;
  }

  Followed ReadOn() {
    if (!follower_) {
      std::string path;
      for (const auto& entry : std::filesystem::directory_iterator(folder_)) path = entry.path().string();
      file_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      auto opened = SpanFollower::Open([fd = file_.get()](uint64_t offset, char* to, size_t bytes) -> size_t {
        const ssize_t got = ::pread(fd, to, bytes, static_cast<off_t>(offset));
        return got < 0 ? 0 : static_cast<size_t>(got);
      });
      if (!opened) return {};  // Its first bytes are written last.
      follower_ = std::move(*opened);
    }
    auto followed = follower_->ReadOn();
    EXPECT_TRUE(followed) << followed.error().ToString();
    if (!followed) return {};
    for (const FollowedSpan& span : followed->spans) ++totals_[follower_->NameOf(span.name)];
    return std::move(*followed);
  }

  Shared* shared_ = nullptr;
  const TemporaryFolder scratch_;
  const std::string& folder_ = scratch_.path();
  pid_t child_ = -1;
  UniqueFd file_;
  std::optional<SpanFollower> follower_;
  std::map<std::string, int> totals_;
};

TEST_F(SpanFollowerTest, EachReadingHasWhatCameSinceTheOneBefore) {
  Start([](Shared* shared) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // Longer than the clock's first anchor takes.
    { LOCKSTEP_SPAN("first"); }
    shared->done = 1;
    shared->Await(2);
    const lockstep_span_t open = lockstep_begin(lockstep_name("long"));
    lockstep_counter(lockstep_name("loss"), 0.5);
    shared->done = 2;
    shared->Await(3);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    lockstep_end(open);
    shared->done = 3;
    shared->Await(4);
  });
  Let(1);
  ReadOn();
  EXPECT_EQ(totals_["first"], 1);
  Let(2);
  const Followed second = ReadOn();
  EXPECT_TRUE(second.spans.empty());
  ASSERT_EQ(second.counters.size(), 1u);
  EXPECT_EQ(follower_->NameOf(second.counters[0].name), "loss");
  EXPECT_EQ(second.counters[0].value, 0.5);
  EXPECT_EQ(follower_->open_count(), 1u);
  Let(3);
  const Followed third = ReadOn();
  ASSERT_EQ(third.spans.size(), 1u);
  EXPECT_EQ(follower_->NameOf(third.spans[0].name), "long");
  EXPECT_GE(third.spans[0].duration_ns, 20'000'000);
  EXPECT_EQ(follower_->open_count(), 0u);
  const int64_t now_ns = std::chrono::system_clock::now().time_since_epoch().count();
  EXPECT_LT(std::abs(now_ns - third.spans[0].start_ns), 10'000'000'000);
  EXPECT_FALSE(third.has_ended);
  EXPECT_EQ(ReadOn().record_count, 0u);
  shared_->stage = 4;
  AwaitEnd();
  EXPECT_TRUE(ReadOn().has_ended);
}

TEST_F(SpanFollowerTest, NothingIsLostOrTwiceWhileThreadsFillChunkAfterChunk) {
  constexpr int kThreads = 6;
  constexpr int kSpans = 40'000;  // Ten chunks a thread.
  Start([](Shared* shared) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([shared, thread] {
        const lockstep_name_t outer = lockstep_name(("outer" + std::to_string(thread)).c_str());
        const lockstep_name_t inner = lockstep_name(("inner" + std::to_string(thread)).c_str());
        for (int i = 0; i < kSpans / 100; ++i) {
          if (i % 20 == 0) shared->Await(i / 20);  // Not before it was read so often.
          const lockstep_span_t whole = lockstep_begin(outer);
          for (int j = 0; j < 100; ++j) lockstep_end(lockstep_begin(inner));
          lockstep_end(whole);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    shared->done = 1;
  });
  while (std::filesystem::is_empty(folder_)) std::this_thread::yield();
  int readings = 0;
  uint64_t missed = 0;
  const Followed last = FollowToItsEnd(&missed, [&] { shared_->stage = ++readings; });
  EXPECT_TRUE(last.has_ended);
  AwaitEnd();
  EXPECT_GE(readings, kSpans / 100 / 20);  // What the threads wait for, and the one that sees the end.
  EXPECT_EQ(missed, 0u);
  for (int thread = 0; thread < kThreads; ++thread) {
    EXPECT_EQ(totals_["outer" + std::to_string(thread)], kSpans / 100) << thread;
    EXPECT_EQ(totals_["inner" + std::to_string(thread)], kSpans) << thread;
  }
  EXPECT_EQ(follower_->open_count(), 0u);
}

TEST_F(SpanFollowerTest, StepsAndRequestsComeWithTheirNumbers) {
  Start([](Shared* shared) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    for (int step = 0; step < 3; ++step) {
      lockstep_step();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    lockstep_step_end();
    const uint64_t request = lockstep_request_begin(lockstep_name("generate"), nullptr, nullptr);
    lockstep_request_output(request, 7);
    lockstep_request_end(request, 1);
    shared->done = 1;
    shared->Await(2);
  });
  Let(1);
  const Followed followed = ReadOn();
  ASSERT_EQ(followed.steps.size(), 3u);
  EXPECT_EQ(followed.steps[2].number - followed.steps[0].number, 2);
  for (const FollowedStep& step : followed.steps) EXPECT_GE(step.duration_ns, 5'000'000);
  ASSERT_EQ(followed.requests.size(), 3u);
  EXPECT_EQ(followed.requests[0].kind, FollowedRequest::Kind::kBegin);
  EXPECT_EQ(follower_->NameOf(followed.requests[0].name), "generate");
  EXPECT_EQ(followed.requests[1].output_count, 7u);
  EXPECT_TRUE(followed.requests[2].failed);
  EXPECT_EQ(followed.requests[2].request, followed.requests[0].request);
  EXPECT_EQ(follower_->header().rank, 2);
}

TEST_F(SpanFollowerTest, AKilledProcessLeavesItsOpenSpans) {
  Start([](Shared* shared) {
    for (int i = 0; i < 2; ++i) {  // The clock's rate is known from the second one on.
      LOCKSTEP_SPAN("whole");
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    lockstep_begin(lockstep_name("stuck"));
    shared->done = 1;
    shared->Await(1000);
  });
  Let(1);
  ::kill(child_, SIGKILL);
  AwaitEnd();
  const Followed followed = ReadOn();
  EXPECT_EQ(totals_["whole"], 2);
  EXPECT_EQ(totals_["stuck"], 0);
  EXPECT_FALSE(followed.has_ended);
  EXPECT_EQ(follower_->open_count(), 1u);
}

TEST_F(SpanFollowerTest, AFileThatKeepsTheNewestIsFollowedPastItsLimit) {
  constexpr int kSpans = 1'000'000;  // 16 MB in a file of 4 MiB.
  Start(
      [](Shared* shared) {
        const lockstep_name_t part = lockstep_name("part");
        for (int i = 0; i < kSpans; ++i) {
          lockstep_end(lockstep_begin(part));
          // At most ten chunks ahead of its reader, who has 32 to come after it.
          while (i % 40'000 == 0 && shared->stage < i / 40'000) std::this_thread::yield();
        }
        shared->done = 1;
      },
      {{"LOCKSTEP_TRACE_RING", "1"}, {"LOCKSTEP_TRACE_LIMIT_MIB", "4"}});
  while (std::filesystem::is_empty(folder_)) std::this_thread::yield();
  uint64_t missed = 0;
  const Followed last = FollowToItsEnd(&missed, [&] { shared_->stage = totals_["part"] / 40'000 + 1; });
  EXPECT_TRUE(last.has_ended);
  AwaitEnd();
  EXPECT_EQ(totals_["part"], kSpans);
  EXPECT_EQ(missed, 0u);
  EXPECT_EQ(last.dropped_count, 0u);
  EXPECT_GT(follower_->header().overwritten_chunks, 100u);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) EXPECT_LE(entry.file_size(), 4u << 20);
}

TEST_F(SpanFollowerTest, WhatWasOverwrittenBeforeItWasReadIsCounted) {
  Start(
      [](Shared* shared) {
        const lockstep_name_t part = lockstep_name("part");
        shared->done = 1;
        for (int stage = 2; stage <= 4; ++stage) {
          for (int i = 0; i < 500'000; ++i) lockstep_end(lockstep_begin(part));
          shared->done = stage;
          shared->Await(stage + 1);
        }
      },
      {{"LOCKSTEP_TRACE_RING", "1"}, {"LOCKSTEP_TRACE_LIMIT_MIB", "4"}});
  uint64_t missed = 0;
  for (int stage = 2; stage <= 4; ++stage) {
    Let(stage);
    for (int i = 0; i < 4; ++i) missed += ReadOn().missed_count;
  }
  shared_->stage = 5;
  AwaitEnd();
  // What was there before the first reading nobody knows. Of a chunk its whole room is counted.
  const int known = totals_["part"] + static_cast<int>(missed);
  EXPECT_GT(missed, 0u);
  EXPECT_GE(known, 1'000'000);
  EXPECT_LE(known, 1'500'000 + 40'000);
}

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

TEST_F(SpanFollowerTest, AReadingTakesABoundedPartAndTheNextGoesOnWithIt) {
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

TEST_F(SpanFollowerTest, AThreadsRecordsComeInOrderHoweverManyReadingsTheyTake) {
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
TEST_F(SpanFollowerTest, StepsThatTouchDoNotOverlapHoweverTheClocksWobble) {
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

TEST_F(SpanFollowerTest, TimesOfAWrongClockHaveAnEnd) {
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

TEST_F(SpanFollowerTest, SpansThatNeverEndGiveWayToNewerOnes) {
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

TEST_F(SpanFollowerTest, WhatIsNoSpanTraceIsRefused) {
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
