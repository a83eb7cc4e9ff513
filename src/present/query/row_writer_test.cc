#include "present/query/row_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/cell.h"
#include "present/report/utf8.h"

namespace lockstep::query {
namespace {

using Row = std::vector<Cell>;

std::string Written(std::unique_ptr<RowWriter> (*make)(std::ostream&, const TableStyle&), const TableStyle& style,
                    const std::vector<std::string>& columns, const std::vector<Row>& rows) {
  std::ostringstream out;
  const auto writer = make(out, style);
  writer->Begin(columns);
  for (const Row& row : rows) writer->Row(row);
  writer->End();
  return out.str();
}

std::string Table(const std::vector<std::string>& columns, const std::vector<Row>& rows, int width = 0) {
  return Written(MakeTableWriter, {.width = width, .colour = false, .unicode = false}, columns, rows);
}

TEST(TableWriterTest, NumbersGoRightAndTextsLeft) {
  EXPECT_EQ(Table({"rank", "name"}, {{int64_t{1}, std::string("a")}, {int64_t{100}, Cell()}}),
            "rank  name\n----  ----\n   1  a\n 100  NULL\n");
}

TEST(TableWriterTest, TextsAreShortenedAndNumbersAreNot) {
  const std::string text = Table({"ns", "name"}, {{int64_t{1'700'000'000'000'000'000}, std::string(100, 'x')}}, 40);
  EXPECT_NE(text.find("1700000000000000000"), std::string::npos);
  EXPECT_NE(text.find("..."), std::string::npos);
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(end - begin, 40u);
}

TEST(TableWriterTest, WhatDoesNotFitBecomesBlocks) {
  const Row numbers(6, Cell(int64_t{1'700'000'000'000'000'000}));
  const std::string text = Table({"a", "b", "c", "d", "e", "f"}, {numbers, numbers}, 40);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 13);  // six lines each, one between
  EXPECT_EQ(text.substr(0, text.find('\n')), "a  1700000000000000000");
}

TEST(TableWriterTest, RowsBehindTheFirstThousandAreWrittenToo) {
  std::vector<Row> rows;
  for (int64_t i = 0; i < 2500; ++i) rows.push_back({i});
  const std::string text = Table({"i"}, rows);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2502);
  EXPECT_NE(text.find("2499\n"), std::string::npos);
}

TEST(TableWriterTest, WideAndBrokenTextStaysInItsColumns) {
  const std::string text = Table({"name", "n"}, {{std::string("\xe4\xb8\xad\xe6\x96\x87"), int64_t{1}},
                                                 {std::string("\xff\x1b[31m\n\t"), int64_t{2}}});
  EXPECT_EQ(report::ValidUtf8(text), text);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
}

TEST(TableWriterTest, NoColumnsAndNoRowsAreFine) {
  EXPECT_EQ(Table({"a"}, {}), "a\n-\n");
  EXPECT_EQ(Table({"a"}, {}, 40), "a\n-\n");
}

TEST(RowWriterTest, NamesAreMadeDistinct) {
  EXPECT_EQ(DistinctNames({"a", "b", "a", "a", "a_2"}), (std::vector<std::string>{"a", "b", "a_2", "a_3", "a_2_2"}));
}

}  // namespace
}  // namespace lockstep::query
