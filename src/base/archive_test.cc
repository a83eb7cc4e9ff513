#include "base/archive.h"

#include <gtest/gtest.h>

#include "base/ids.h"

namespace lockstep {
namespace {

enum class Colour : uint8_t { kRed, kBlue };

struct Inner {
  int32_t number = 0;
  std::optional<std::string> word = {};
  bool operator==(const Inner&) const = default;
};

struct Everything {
  int64_t time_ns = 0;
  double ratio = 0;
  bool is_late = false;
  Colour colour = Colour::kRed;
  Rank rank;
  std::string text;
  std::optional<Inner> maybe;
  std::vector<Inner> list;
  std::vector<NameId> names;
  std::vector<bool> bits;
  std::pair<int32_t, std::string> pair;
  std::array<int16_t, 3> three = {};
  std::map<std::string, std::vector<int64_t>, std::less<>> table;
  std::set<int64_t> steps;
  bool operator==(const Everything&) const = default;
};

Everything Sample() {
  Everything sample;
  sample.time_ns = -5;
  sample.ratio = 0.1;
  sample.is_late = true;
  sample.colour = Colour::kBlue;
  sample.rank = {7};
  sample.text = std::string("a\0b", 3);
  sample.maybe = Inner{3, "three"};
  sample.list = {{1, std::nullopt}, {2, ""}};
  sample.names = {NameId{9}, NameId{8}};
  sample.bits = {true, false, true};
  sample.pair = {4, "four"};
  sample.three = {1, 2, 3};
  sample.table = {{"a", {1, 2}}, {"b", {}}};
  sample.steps = {3, 5};
  return sample;
}

struct Columns {
  Column<int64_t> times;
};

struct MoveOnly {
  std::string name;
  Columns columns;
  std::vector<Columns> list;
  int32_t last = 0;
};

TEST(ArchiveTest, StructsThatOnlyMoveAreTakenToo) {
  MoveOnly written;
  written.columns.times.push_back(5);
  written.list.emplace_back().times.push_back(6);
  written.last = 7;
  const auto read = FromBytes<MoveOnly>(ToBytes(written));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->columns.times[0], 5);
  EXPECT_EQ(read->list.at(0).times[0], 6);
  EXPECT_EQ(read->last, 7);
}

class Hidden {
 public:
  explicit Hidden(int32_t value = 0) : value_(value) {}
  int32_t value() const { return value_; }

 private:
  template <typename Archive>
  friend void Fields(Archive& archive, Hidden& hidden) {
    archive(hidden.value_);
  }
  int32_t value_;
};

TEST(ArchiveTest, WhatWasWrittenIsRead) {
  const auto read = FromBytes<Everything>(ToBytes(Sample()));
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(*read, Sample());
}

TEST(ArchiveTest, BytesCutAnywhereAreAnError) {
  const std::string bytes = ToBytes(Sample());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto read = FromBytes<Everything>(std::string_view(bytes).substr(0, length));
    ASSERT_FALSE(read) << length;
    EXPECT_EQ(read.error().code, ErrorCode::kCorruptData);
  }
}

TEST(ArchiveTest, BytesLeftOverAreAnError) { EXPECT_FALSE(FromBytes<Inner>(ToBytes(Inner{1, "one"}) + "x")); }

TEST(ArchiveTest, CountsLargerThanTheBytesTakeNoMemory) {
  std::string bytes(8, '\xff');
  EXPECT_FALSE(FromBytes<std::vector<Inner>>(bytes));
  EXPECT_FALSE(FromBytes<std::vector<int64_t>>(bytes));
  EXPECT_FALSE(FromBytes<std::string>(bytes));
}

TEST(ArchiveTest, ColumnsAreMoved) {
  Column<int64_t> column;
  for (int64_t i = 0; i < 100; ++i) column.push_back(i * i);
  const auto read = FromBytes<Column<int64_t>>(ToBytes(column));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), column.size());
  EXPECT_TRUE(std::equal(read->begin(), read->end(), column.begin()));
}

TEST(ArchiveTest, ClassesListTheirOwnFields) {
  const auto read = FromBytes<std::vector<Hidden>>(ToBytes(std::vector<Hidden>{Hidden(4), Hidden(6)}));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[1].value(), 6);
}

struct Forty {
  int8_t a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, c0, c1, c2, c3, c4, c5, c6, c7,
      c8, c9, d0, d1, d2, d3, d4, d5, d6, d7, d8, d9;
};

TEST(AggregateTest, EveryMemberIsVisited) {
  Forty forty{};
  VisitMembers(forty, [](auto&... members) {
    int8_t next = 0;
    ((members = next++), ...);
    EXPECT_EQ(sizeof...(members), 40u);
  });
  EXPECT_EQ(forty.a0, 0);
  EXPECT_EQ(forty.d9, 39);
}

}  // namespace
}  // namespace lockstep
