#include "analysis/track_merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace lockstep::analysis {
namespace {

struct ListCursor {
  const std::vector<int64_t>* list;
  size_t index;
  size_t row = 0;
  bool done() const { return row >= list->size(); }
  int64_t start() const { return (*list)[row]; }
  void Next() { ++row; }
};

TEST(MergeByStartTest, VisitsEverythingByStartThenCursor) {
  std::mt19937 random(3);
  for (size_t lists = 0; lists < 9; ++lists) {
    for (int round = 0; round < 30; ++round) {
      std::vector<std::vector<int64_t>> values(lists);
      std::vector<std::pair<int64_t, size_t>> expected;
      for (size_t i = 0; i < lists; ++i) {
        values[i].resize(std::uniform_int_distribution<size_t>(0, 20)(random));
        for (int64_t& value : values[i]) value = std::uniform_int_distribution<int64_t>(-20, 20)(random);
        std::sort(values[i].begin(), values[i].end());
        for (const int64_t value : values[i]) expected.emplace_back(value, i);
      }
      std::sort(expected.begin(), expected.end());
      std::vector<ListCursor> cursors;
      for (size_t i = 0; i < lists; ++i) cursors.push_back({&values[i], i});
      std::vector<std::pair<int64_t, size_t>> visited;
      MergeByStart(cursors, [&](const ListCursor& cursor) { visited.emplace_back(cursor.start(), cursor.index); });
      EXPECT_EQ(visited, expected);
    }
  }
}

}  // namespace
}  // namespace lockstep::analysis
