#include "present/export/timeline/slice_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace lockstep::timeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// In: (start, end), sorted by start, longer first.
model::EventColumns Columns(const std::vector<std::pair<int64_t, int64_t>>& intervals) {
  model::EventColumns events;
  for (const auto& [start_ns, end_ns] : intervals) {
    events.start_ns.push_back(start_ns);
    events.duration_ns.push_back(end_ns - start_ns);
  }
  return events;
}

TEST(NestingLevelsTest, NestedAndTouchingSlicesStayOnOneLevel) {
  const NestingLevels levels = FindNestingLevels(Columns({{0, 10}, {0, 10}, {2, 5}, {5, 10}, {10, 10}, {10, 12}}));
  EXPECT_THAT(levels.level_of_row, IsEmpty());
  EXPECT_EQ(levels.level_count, 1U);
  EXPECT_EQ(levels.moved_count, 0U);
}

TEST(NestingLevelsTest, ASliceThatCrossesGoesToTheLowestLevelWhereItNests) {
  const NestingLevels levels = FindNestingLevels(Columns({{0, 10}, {5, 15}, {8, 20}, {12, 14}, {16, 18}}));
  EXPECT_THAT(levels.level_of_row, ElementsAre(0, 1, 2, 0, 0));
  EXPECT_EQ(levels.level_count, 3U);
  EXPECT_EQ(levels.moved_count, 2U);
}

TEST(NestingLevelsTest, RandomSlicesNestOnTheirLevels) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::pair<int64_t, int64_t>> intervals;
    for (int i = 0; i < 40; ++i) {
      const int64_t start_ns = static_cast<int64_t>(random() % 60);
      intervals.emplace_back(start_ns, start_ns + static_cast<int64_t>(random() % 20));
    }
    std::sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    const NestingLevels levels = FindNestingLevels(Columns(intervals));
    EXPECT_TRUE(levels.cut_end_ns.empty());
    for (size_t a = 0; a < intervals.size(); ++a) {
      for (size_t b = a + 1; b < intervals.size(); ++b) {
        if (levels.level(a) != levels.level(b)) continue;
        const bool apart = intervals[b].first >= intervals[a].second;
        const bool inside = intervals[b].second <= intervals[a].second;
        EXPECT_TRUE(apart || inside) << trial << ": " << a << ", " << b;
      }
    }
  }
}

TEST(NestingLevelsTest, EndlessCrossingIsCutAtTheLastLevelInsteadOfGrowing) {
  std::vector<std::pair<int64_t, int64_t>> stairs;
  for (int64_t i = 0; i < 5000; ++i) stairs.emplace_back(i, i + 10'000);
  const NestingLevels levels = FindNestingLevels(Columns(stairs));
  EXPECT_EQ(levels.level_count, kMaxLevels);
  EXPECT_EQ(levels.cut_end_ns.size(), stairs.size() - kMaxLevels);
}

}  // namespace
}  // namespace lockstep::timeline
