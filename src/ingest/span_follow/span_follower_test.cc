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

TEST_F(SpanFollowerTest, WhatIsOpenInAStepIsTold) {
  Start([](Shared* shared) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    lockstep_begin(lockstep_name("outside"));
    lockstep_step();
    const lockstep_span_t forward = lockstep_begin(lockstep_name("forward"));
    const lockstep_span_t inner = lockstep_begin(lockstep_name("inner"));
    std::thread([] { lockstep_begin(lockstep_name("elsewhere")); }).join();
    shared->done = 1;
    shared->Await(2);
    lockstep_end(inner);
    shared->done = 2;
    shared->Await(3);
    lockstep_end(forward);
    lockstep_step();
    shared->done = 3;
    shared->Await(4);
    lockstep_step_end();
    shared->done = 4;
    shared->Await(5);
  });
  const auto open = [&] {
    std::vector<std::string> names;
    for (const FollowedSpan& span : ReadOn().open) names.push_back(follower_->NameOf(span.name));
    return names;
  };
  Let(1);
  EXPECT_THAT(open(), ElementsAre("", "forward", "inner"));  // A step has a number, and no name.
  EXPECT_THAT(open(), ElementsAre("", "forward", "inner"));
  Let(2);
  EXPECT_THAT(open(), ElementsAre("", "forward"));
  Let(3);
  EXPECT_THAT(open(), ElementsAre(""));
  Let(4);
  EXPECT_THAT(open(), ElementsAre());
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

}  // namespace
}  // namespace lockstep::ingest::span_follow
