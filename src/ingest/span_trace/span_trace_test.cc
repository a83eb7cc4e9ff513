#include "ingest/span_trace/span_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <lockstep/trace.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ingest/span_trace/tick_clock.h"
#include "ingest/span_trace/wire_format.h"

namespace lockstep::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

/// What a process of its own leaves that records `work` as rank 2 of 4.
std::string RecordInChild(const std::function<void()>& work, const std::map<std::string, std::string>& variables = {}) {
  char folder[] = "/tmp/lockstep-XXXXXX";
  if (mkdtemp(folder) == nullptr) return "";
  const pid_t child = fork();
  if (child == 0) {
    setenv("RANK", "2", 1);
    setenv("WORLD_SIZE", "4", 1);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const bool started = lockstep_trace_start(folder) != 0;
    work();
    _exit(started ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::filesystem::remove_all(folder);
  EXPECT_EQ(status, 0);
  return bytes;
}

TraceContent Read(const std::string& bytes) {
  auto source = OpenMemory(bytes, {});
  auto content = ReadSpanTrace(**source, "rank2.spans", {});
  EXPECT_TRUE(content) << (content ? "" : content.error().ToString());
  return content ? std::move(*content) : TraceContent();
}

std::map<std::string, int> CountByName(const TraceContent& content) {
  std::map<std::string, int> counts;
  for (const model::Track& track : content.trace.tracks) {
    for (const NameId name : track.events.name) ++counts[std::string(content.names[name])];
  }
  counts.erase("lockstep_trace_start");
  return counts;
}

bool HasRow(const TraceContent& content, const std::string& code) {
  const auto& entries = content.ledger.entries();
  return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.code == code; });
}

TEST(SpanTraceTest, SpansAreAnnotationsOfTheirRankOnTheWallClock) {
  const int64_t before_ns = std::chrono::system_clock::now().time_since_epoch().count();
  const TraceContent content = Read(RecordInChild([] {
    LOCKSTEP_SPAN("outer");
    for (int i = 0; i < 10'000; ++i) {
      LOCKSTEP_SPAN("inner");
    }
  }));
  const int64_t after_ns = std::chrono::system_clock::now().time_since_epoch().count();
  EXPECT_THAT(CountByName(content), UnorderedElementsAre(Pair("outer", 1), Pair("inner", 10'000)));
  EXPECT_TRUE(content.has_rank && content.is_span_trace && content.trace.base_time_known);
  EXPECT_EQ(content.trace.rank.value, 2);
  EXPECT_EQ(content.trace.source, "rank2.spans");
  EXPECT_EQ(content.trace.world_size, 4);
  ASSERT_EQ(content.trace.tracks.size(), 1u);
  // The clocks are read one after the other, which another thread may interrupt.
  EXPECT_GE(*content.trace.first_ns, before_ns - 1'000'000);
  EXPECT_LE(*content.trace.last_ns, after_ns + 1'000'000);
  const model::EventColumns& events = content.trace.tracks[0].events;
  for (size_t i = 1; i < events.size(); ++i) ASSERT_LE(events.start_ns[i - 1], events.start_ns[i]);
}

TEST(SpanTraceTest, ASpanThatOutlivesItsChunkHasItsLength) {
  const TraceContent content = Read(RecordInChild([] {
    static lockstep::trace::Name name("long");
    const lockstep_span_t span = lockstep_begin(name.number());
    for (int i = 0; i < 50'000; ++i) {
      LOCKSTEP_SPAN("short");
    }
    lockstep_end(span);
    for (int i = 0; i < 50'000; ++i) {
      LOCKSTEP_SPAN("after");
    }
  }));
  const model::EventColumns& events = content.trace.tracks.at(0).events;
  int64_t long_end_ns = 0, last_short_ns = 0, first_after_ns = INT64_MAX;
  for (size_t i = 0; i < events.size(); ++i) {
    const std::string_view name = content.names[events.name[i]];
    if (name == "long") long_end_ns = events.end_ns(i);
    if (name == "short") last_short_ns = std::max(last_short_ns, events.end_ns(i));
    if (name == "after") first_after_ns = std::min(first_after_ns, events.start_ns[i]);
  }
  EXPECT_GE(long_end_ns, last_short_ns);
  EXPECT_LE(long_end_ns, first_after_ns);
  EXPECT_FALSE(HasRow(content, "unfinished_spans"));
}

TEST(SpanTraceTest, AStepThatHasNotEndedIsNoStep) {
  const TraceContent content = Read(RecordInChild([] {
    lockstep_step_number(7);
    lockstep_step();
    lockstep_step();
  }));
  EXPECT_THAT(CountByName(content), UnorderedElementsAre(Pair("ProfilerStep#7", 1), Pair("ProfilerStep#8", 1),
                                                         Pair("step 9 (unfinished)", 1)));
  EXPECT_TRUE(HasRow(content, "unfinished_spans"));
}

/// 512 KiB for what threads write into, and eight places for copies.
const std::map<std::string, std::string> kSmallRing = {{"LOCKSTEP_TRACE_RING", "1"}, {"LOCKSTEP_TRACE_LIMIT_MIB", "1"}};

TEST(SpanTraceTest, WhatEndedInAnOverwrittenChunkIsLeftOutAndNotUnfinished) {
  const TraceContent content = Read(RecordInChild(
      [] {
        static lockstep::trace::Name name("generate");
        const uint64_t request = lockstep_request_begin(name.number(), nullptr, nullptr);
        for (int step = 0; step < 100; ++step) {
          lockstep_step_number(step);
          for (int i = 0; i < 2'000; ++i) {
            LOCKSTEP_SPAN("part");
          }
          if (step == 2) lockstep_request_end(request, 0);
        }
      },
      kSmallRing));
  std::map<std::string, int> counts = CountByName(content);
  EXPECT_GT(counts["part"], 20'000);
  EXPECT_EQ(counts.count("step 0 (unfinished)"), 0u);
  EXPECT_EQ(counts["step 99 (unfinished)"], 1) << "what the process was in";
  EXPECT_EQ(counts["ProfilerStep#98"], 1);
  EXPECT_TRUE(content.trace.requests.empty());
  EXPECT_TRUE(HasRow(content, "overwritten_spans") && HasRow(content, "lost_ends"));
}

TEST(SpanTraceTest, ThreadsThatHoldMoreThanHalfOfARingRecordOn) {
  constexpr int kThreads = 30;
  const std::string bytes = RecordInChild(
      [] {
        std::atomic<int> waiting = 0;
        std::vector<std::thread> threads;
        for (int thread = 0; thread < kThreads; ++thread) {
          threads.emplace_back([&waiting, thread] {
            const lockstep_name_t own = lockstep_name(("thread" + std::to_string(thread)).c_str());
            lockstep_end(lockstep_begin(own));  // Each has a first, small chunk.
            ++waiting;
            while (waiting < kThreads) std::this_thread::yield();
            for (int i = 0; i < 20'000; ++i) lockstep_end(lockstep_begin(own));
          });
        }
        for (std::thread& thread : threads) thread.join();
        LOCKSTEP_SPAN("after");
      },
      kSmallRing);
  EXPECT_LE(bytes.size(), 1u << 20);
  const TraceContent content = Read(bytes);
  std::map<std::string, int> counts = CountByName(content);
  EXPECT_EQ(counts["after"], 1);
  EXPECT_FALSE(HasRow(content, "dropped_spans"));
  EXPECT_FALSE(HasRow(content, "damaged_chunks"));
  // No copy is made of what two threads wrote.
  for (const model::Track& track : content.trace.tracks) {
    std::set<std::string_view> names;
    for (const NameId name : track.events.name) names.insert(content.names[name]);
    names.erase("after");
    EXPECT_LE(names.size(), 1u) << testing::PrintToString(names);
  }
}

TEST(SpanTraceTest, ThreadsThatComeAndGoRecordOnInAFullRing) {
  const TraceContent content = Read(RecordInChild(
      [] {
        for (int i = 0; i < 5'000; ++i) {
          std::thread([i] {
            for (int part = 0; part < i % 300; ++part) {
              LOCKSTEP_SPAN("part");
            }
            if (i == 4'999) lockstep_mark(lockstep_name("last"));
          }).join();
        }
      },
      kSmallRing));
  EXPECT_EQ(CountByName(content)["last"], 1);
  EXPECT_TRUE(HasRow(content, "overwritten_spans"));
  EXPECT_FALSE(HasRow(content, "dropped_spans") || HasRow(content, "damaged_chunks"));
}

TEST(SpanTraceTest, CountersKeepEveryKindOfNumber) {
  const TraceContent content = Read(RecordInChild([] {
    for (const double value : {0.0, 3.0, -1.0, 0.5, 1e300, 1099511627775.0, 1099511627776.0}) {
      LOCKSTEP_COUNTER("value", value);
    }
    LOCKSTEP_COUNTER("device_step", 1);  // Of a device's times: no value that has a course.
    LOCKSTEP_COUNTER("device_stage/forward", 70);
  }));
  ASSERT_EQ(content.trace.counters.size(), 1u);
  const model::CounterSeries& series = content.trace.counters[0];
  EXPECT_EQ(series.name, "value");
  EXPECT_THAT(std::vector<double>(series.value.begin(), series.value.end()),
              ElementsAre(0.0, 3.0, -1.0, 0.5, 1e300, 1099511627775.0, 1099511627776.0));
}

TEST(SpanTraceTest, RequestsAndLinkedSpansCarryTheirContext) {
  const TraceContent content = Read(RecordInChild([] {
    static lockstep::trace::Name generate("generate"), call("call");
    lockstep_context parent, own;
    lockstep_context_read("00-0000000000000001000000000000000a-00000000000000ff-01", &parent);
    const uint64_t done = lockstep_request_begin(generate.number(), &parent, &own);
    lockstep_request_output(done, 1);
    lockstep_request_output(done, 5);
    { const lockstep::trace::Span span(call, &own, nullptr); }
    lockstep_request_end(done, 0);
    lockstep_request_end(lockstep_request_begin(generate.number(), nullptr, nullptr), 1);
    lockstep_request_begin(generate.number(), nullptr, nullptr);
  }));
  ASSERT_EQ(content.trace.requests.size(), 3u);
  const model::RequestRecord& first = content.trace.requests[0];
  EXPECT_EQ(content.names[first.name], "generate");
  EXPECT_EQ(first.output_count, 6);
  EXPECT_TRUE(first.first_output_ns.has_value() && !first.failed && !first.unfinished);
  EXPECT_EQ(first.context.trace_high, 1u);
  EXPECT_EQ(first.context.trace_low, 10u);
  EXPECT_EQ(first.context.parent_id, 255u);
  EXPECT_TRUE(content.trace.requests[1].failed && !content.trace.requests[1].first_output_ns);
  EXPECT_TRUE(content.trace.requests[2].unfinished);
  ASSERT_EQ(content.trace.linked_spans.size(), 1u);
  EXPECT_EQ(content.trace.linked_spans[0].context.parent_id, first.context.span_id);
  EXPECT_EQ(content.trace.linked_spans[0].context.trace_low, 10u);
}

TEST(SpanTraceTest, AnyCutIsReadOrRefused) {
  const std::string bytes = RecordInChild([] {
    for (int i = 0; i < 3'000; ++i) {
      LOCKSTEP_SPAN("span");
    }
  });
  int last = 0;
  for (size_t size = 0; size < 80'000; size += 517) {
    auto source = OpenMemory(bytes.substr(0, size), {});
    if (!source) continue;
    const auto content = ReadSpanTrace(**source, "cut", {});
    if (!content) {
      EXPECT_LT(size, sizeof(span_trace::Header));
      continue;
    }
    const int count = CountByName(*content)["span"];
    EXPECT_GE(count, last);
    last = count;
  }
  EXPECT_GT(last, 2'000);
}

TEST(SpanTraceTest, DamageCostsThePagesThatItIsIn) {
  std::string bytes = RecordInChild([] {
    for (int i = 0; i < 20'000; ++i) {
      LOCKSTEP_SPAN("span");
    }
  });
  const int whole = CountByName(Read(bytes))["span"];
  // The head of some chunk in the middle becomes nonsense.
  const std::string magic(reinterpret_cast<const char*>(&span_trace::kChunkMagic), 4);
  const size_t chunk = bytes.find(magic, bytes.size() / 2);
  ASSERT_NE(chunk, std::string::npos);
  std::memset(bytes.data() + chunk, 0x5a, 64);
  const TraceContent damaged = Read(bytes);
  EXPECT_TRUE(HasRow(damaged, "damaged_chunks"));
  EXPECT_EQ(whole, 20'000);
  EXPECT_GT(CountByName(damaged).at("span"), 10'000);
}

TEST(SpanTraceTest, AnotherVersionIsRefusedByName) {
  std::string bytes = RecordInChild([] { LOCKSTEP_SPAN("span"); });
  bytes[8] = 9;
  auto source = OpenMemory(bytes, {});
  const auto content = ReadSpanTrace(**source, "new.spans", {});
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, ErrorCode::kUnsupported);
}

TEST(TickClockTest, TimesBetweenAnchorsLieOnStraightLines) {
  const span_trace::TickClock clock({{3000, 2'000'001'000, 5'002'001'000, 4}, {1000, 1'000, 5'000'001'000, 4}});
  EXPECT_EQ(clock.ToWall(1000), 5'000'001'000);
  EXPECT_EQ(clock.ToWall(3000), 5'002'001'000);
  EXPECT_EQ(clock.step_count(), 1u);  // The wall clock was set back by two seconds less two milliseconds.
}

TEST(TickClockTest, TheWallClocksSlewIsFollowedAndAStepIsNot) {
  // Two ticks a nanosecond; the wall gains 100 us in the first second, and is set by an hour in the second one.
  const int64_t s = 1'000'000'000;
  const span_trace::TickClock clock(
      {{0, 0, 100 * s, 1}, {2'000'000'000, s, 101 * s + 100'000, 1}, {4'000'000'000, 2 * s, 3702 * s, 1}});
  EXPECT_EQ(clock.ToWall(1'000'000'000), 100 * s + s / 2 + 50'000);
  EXPECT_EQ(clock.ToWall(3'000'000'000), 101 * s + 100'000 + s / 2);
  EXPECT_EQ(clock.ToWall(4'000'000'000), 3702 * s);
  EXPECT_EQ(clock.step_count(), 1u);
}

}  // namespace
}  // namespace lockstep::ingest
