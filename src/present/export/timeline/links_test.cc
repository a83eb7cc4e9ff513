#include "present/export/timeline/links.h"

#include <gmock/gmock.h>

namespace lockstep::timeline {
namespace {

using testing::IsEmpty;

/// Ranks with one thread each, and spans on it.
class LinksTest : public testing::Test {
 protected:
  LinksTest() {
    for (int rank = 0; rank < 2; ++rank) {
      model::RankTrace& trace = run_.ranks.emplace_back();
      trace.rank = Rank{rank};
      model::Track& track = trace.tracks.emplace_back();
      track.lane = model::Lane::kOperators;
      track.process_id = 100 + rank;
      track.thread_id = 7;
    }
    name_ = run_.names.Intern("span");
  }

  /// Of one trace; spans of a rank come in order of time.
  void AddSpan(size_t rank, int64_t start_ns, int64_t duration_ns, uint64_t id, uint64_t parent) {
    model::RankTrace& trace = run_.ranks[rank];
    model::EventColumns& events = trace.tracks[0].events;
    events.start_ns.push_back(start_ns);
    events.duration_ns.push_back(duration_ns);
    events.name.push_back(name_);
    events.category.push_back(model::Category::kUserAnnotation);
    trace.linked_spans.push_back({start_ns, duration_ns, trace.tracks[0].process_id, 7, name_, {1, 2, id, parent}});
  }

  Links Find(bool flows = true) {
    Options options;
    options.selection.flows = flows;
    uint64_t next_id = 1;
    const auto selection = RunSelection::Resolve(run_, options);
    EXPECT_TRUE(selection);
    return FindLinks(run_, *selection, &next_id);
  }

  model::Run run_;
  NameId name_;
};

TEST_F(LinksTest, AnArrowGoesFromTheCallerToEachThatItCalled) {
  AddSpan(0, 0, 100, 10, 0);
  AddSpan(1, 10, 20, 11, 10);
  AddSpan(1, 40, 20, 12, 10);
  const Links links = Find();
  EXPECT_EQ(links.flow_count, 2u);
  ASSERT_EQ(links.ranks[0].spans.size(), 2u);
  ASSERT_EQ(links.ranks[1].spans.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(links.ranks[0].spans[i].flow.end, FlowEnd::kStart);
    EXPECT_EQ(links.ranks[1].spans[i].flow.end, FlowEnd::kEnd);
    EXPECT_EQ(links.ranks[0].spans[i].flow.id, links.ranks[1].spans[i].flow.id) << "each pair has a flow of its own";
    EXPECT_EQ(links.ranks[1].spans[i].at.row, i);
  }
}

TEST_F(LinksTest, WhatLiesInsideItsCallerNeedsNoArrow) {
  AddSpan(0, 0, 100, 10, 0);
  AddSpan(0, 10, 20, 11, 10);
  AddSpan(0, 150, 20, 12, 10);
  const Links links = Find();
  EXPECT_EQ(links.flow_count, 1u) << "the last begins after its caller has ended";
  EXPECT_EQ(links.ranks[0].contexts.size(), 3u);
}

TEST_F(LinksTest, AnArrowNeverGoesBackInTime) {
  AddSpan(0, 50, 100, 10, 0);
  AddSpan(1, 10, 20, 11, 10);
  EXPECT_EQ(Find().flow_count, 0u);
  EXPECT_EQ(Find().backward_count, 1u);
  run_.ranks[1].clock.offset_ns = -1000;
  EXPECT_EQ(Find().flow_count, 1u) << "it is the aligned clock that counts";
}

TEST_F(LinksTest, ARequestCallsSpansOfOtherRanks) {
  model::RequestRecord request;
  request.duration_ns = 100;
  request.name = name_;
  request.context = {1, 2, 10, 99};
  run_.ranks[0].requests.push_back(request);
  AddSpan(1, 10, 20, 11, 10);
  const Links links = Find();
  EXPECT_EQ(links.flow_count, 1u) << "whoever called the request is not there";
  ASSERT_EQ(links.ranks[0].requests.size(), 1u);
  EXPECT_EQ(links.ranks[0].requests[0].flow.id, links.ranks[1].spans[0].flow.id);
}

TEST_F(LinksTest, TracesAreKeptApartAndNobodyCallsHimself) {
  AddSpan(0, 0, 10, 10, 10);
  AddSpan(1, 20, 10, 11, 10);
  run_.ranks[1].linked_spans[0].context.trace_low = 3;
  AddSpan(1, 40, 10, 0, 0);  // Without an id it is nobody's parent.
  AddSpan(1, 60, 10, 12, 77);
  EXPECT_EQ(Find().flow_count, 0u);
}

TEST_F(LinksTest, WithoutFlowsContextsStay) {
  AddSpan(0, 0, 100, 10, 0);
  AddSpan(1, 10, 20, 11, 10);
  const Links links = Find(false);
  EXPECT_EQ(links.flow_count, 0u);
  EXPECT_THAT(links.ranks[0].spans, IsEmpty());
  EXPECT_EQ(links.ranks[1].contexts.size(), 1u);
}

TEST_F(LinksTest, ASpanWhoseEventIsNotThereHasNoArrow) {
  AddSpan(0, 0, 100, 10, 0);
  AddSpan(1, 10, 20, 11, 10);
  run_.ranks[1].linked_spans[0].thread_id = 8;
  EXPECT_EQ(Find().flow_count, 0u);
}

}  // namespace
}  // namespace lockstep::timeline
