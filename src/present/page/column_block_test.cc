#include "present/page/column_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "present/page/page.h"
#include "present/page/testing/read_block.h"

namespace lockstep::page {
namespace {

using ::testing::ElementsAreArray;
using testing::ReadBlock;

TEST(ColumnBlockTest, ColumnsOfEveryWidthComeBack) {
  const std::vector<uint8_t> bytes = {1, 2, 255};
  const std::vector<uint16_t> halves = {0, 258, 65535};
  const std::vector<uint32_t> words = {0, 1, 0x12345678, UINT32_MAX};
  const std::vector<double> numbers = {0.0, -1.5, 1e300, std::numeric_limits<double>::infinity()};
  ColumnBlock block;
  block.header().Key("unit_ns").Int(7);
  block.Add("bytes", bytes);
  block.Add("halves", halves);
  block.Add("words", words);
  block.Add("numbers", numbers);
  block.Add("none", std::vector<uint32_t>());
  const ReadBlock read(block.Finish());
  EXPECT_EQ(read.header()["unit_ns"].GetInt(), 7);
  EXPECT_THAT(read.Column<uint8_t>("bytes"), ElementsAreArray(bytes));
  EXPECT_THAT(read.Column<uint16_t>("halves"), ElementsAreArray(halves));
  EXPECT_THAT(read.Column<uint32_t>("words"), ElementsAreArray(words));
  EXPECT_THAT(read.Column<double>("numbers"), ElementsAreArray(numbers));
  EXPECT_TRUE(read.Column<uint32_t>("none").empty());
}

TEST(ColumnBlockTest, ABlockIsOneGzipMemberOfAnyLength) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{70'000}, size_t{5'000'000}}) {
    std::string raw(size, '\0');
    uint32_t state = 1;
    for (char& c : raw) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);  // does not pack
    const Block block = MakeBlock("x", raw);
    EXPECT_EQ(block.raw_bytes, size);
    EXPECT_TRUE(testing::Gunzip(block.gzip) == raw) << size;
    const std::string same(size, 'a');
    EXPECT_TRUE(testing::Gunzip(MakeBlock("x", same).gzip) == same) << size;
  }
}

}  // namespace
}  // namespace lockstep::page
