#include "ingest/job/join_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace lockstep::ingest {
namespace {

using ::testing::ElementsAre;

class JoinSpansTest : public ::testing::Test {
 protected:
  using Event = std::tuple<std::string, int64_t, int64_t>;  // Name, start, end.

  void Add(model::RankTrace* trace, int64_t thread, const std::vector<Event>& events) {
    model::Track track;
    track.lane = model::Lane::kOperators;
    track.process_id = 17;
    track.thread_id = thread;
    for (const auto& [name, start_ns, end_ns] : events) {
      track.events.start_ns.push_back(start_ns);
      track.events.duration_ns.push_back(end_ns - start_ns);
      track.events.name.push_back(names_.Intern(name));
      track.events.category.push_back(model::Category::kUserAnnotation);
      trace->first_ns = std::min(trace->first_ns.value_or(start_ns), start_ns);
      trace->last_ns = std::max(trace->last_ns.value_or(end_ns), end_ns);
    }
    trace->tracks.push_back(std::move(track));
  }

  std::vector<Event> EventsOf(const model::Track& track) {
    std::vector<Event> events;
    for (size_t i = 0; i < track.events.size(); ++i) {
      events.emplace_back(names_[track.events.name[i]], track.events.start_ns[i], track.events.end_ns(i));
    }
    return events;
  }

  model::NameTable names_;
  model::RankTrace profile_, spans_;
};

TEST_F(JoinSpansTest, SpansOfAThreadStandAmongItsOperatorsAndAroundThem) {
  Add(&profile_, 1, {{"a", 100, 200}, {"b", 300, 400}});
  Add(&spans_, 1, {{"forward", 100, 200}, {"backward", 250, 400}});
  Add(&spans_, 2, {{"loader", 120, 130}});
  EXPECT_EQ(JoinSpans(spans_, names_, SpanScope::kOwnTime, &profile_), 0u);
  ASSERT_EQ(profile_.tracks.size(), 2u);
  EXPECT_THAT(EventsOf(profile_.tracks[0]), ElementsAre(Event{"forward", 100, 200}, Event{"a", 100, 200},
                                                        Event{"backward", 250, 400}, Event{"b", 300, 400}));
  EXPECT_THAT(EventsOf(profile_.tracks[1]), ElementsAre(Event{"loader", 120, 130}));
}

TEST_F(JoinSpansTest, WhatReachesBeyondTheProfilersWindowIsCutAndWhatLiesOutsideIsCounted) {
  Add(&profile_, 1, {{"a", 100, 200}});
  Add(&spans_, 1, {{"early", 0, 50}, {"epoch", 10, 900}, {"step", 20, 150}, {"late", 300, 400}});
  EXPECT_EQ(JoinSpans(spans_, names_, SpanScope::kOwnTime, &profile_), 2u);
  EXPECT_THAT(EventsOf(profile_.tracks[0]),
              ElementsAre(Event{"epoch", 100, 200}, Event{"a", 100, 200}, Event{"step", 100, 150}));
  EXPECT_EQ(*profile_.last_ns, 200);
}

TEST_F(JoinSpansTest, TheProfilersOwnStepsCount) {
  Add(&profile_, 1, {{"ProfilerStep#4", 100, 200}});
  Add(&spans_, 1, {{"ProfilerStep#0", 100, 199}, {"forward", 110, 120}});
  JoinSpans(spans_, names_, SpanScope::kOwnTime, &profile_);
  EXPECT_THAT(EventsOf(profile_.tracks[0]), ElementsAre(Event{"ProfilerStep#4", 100, 200}, Event{"forward", 110, 120}));
}

TEST_F(JoinSpansTest, AnotherProcessOfTheRankIsTakenOverWhole) {
  Add(&profile_, 1, {{"a", 100, 200}});
  Add(&spans_, 2, {{"worker", 50, 900}});
  spans_.counters.push_back({});
  spans_.counters[0].name = "queue";
  spans_.counters[0].time_ns.push_back(60);
  spans_.counters[0].value.push_back(3);
  EXPECT_EQ(JoinSpans(spans_, names_, SpanScope::kAll, &profile_), 0u);
  EXPECT_EQ(*profile_.first_ns, 50);
  EXPECT_EQ(*profile_.last_ns, 900);
  ASSERT_EQ(profile_.counters.size(), 1u);
  EXPECT_EQ(profile_.counters[0].size(), 1u);
}

}  // namespace
}  // namespace lockstep::ingest
