#include "programs/python/arrow_export.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "programs/python/column_builder.h"

namespace lockstep::python {
namespace {

Table Sample() {
  TableBuilder builder(
      "sample",
      {{"rank", Kind::kInt64}, {"wait_ns", Kind::kInt64, "ns", true}, {"chronic", Kind::kBool}, {"host", Kind::kText}});
  for (int i = 0; i < 10; ++i) {
    builder[0].Int(i);
    i % 3 == 0 ? builder[1].Null() : builder[1].Int(100 * i);
    builder[2].Bool(i % 2 == 1);
    builder[3].Text("node" + std::to_string(i));
  }
  return std::move(builder).Finish();
}

TEST(ArrowExportTest, ASchemaSaysFormatNameUnitAndNulls) {
  ArrowSchema schema;
  ExportSchema(Sample(), &schema);
  EXPECT_STREQ(schema.format, "+s");
  ASSERT_EQ(schema.n_children, 4);
  EXPECT_STREQ(schema.children[0]->format, "l");
  EXPECT_STREQ(schema.children[0]->name, "rank");
  EXPECT_EQ(schema.children[0]->flags, 0);
  EXPECT_EQ(schema.children[0]->metadata, nullptr);
  EXPECT_EQ(schema.children[1]->flags, kArrowNullable);
  EXPECT_STREQ(schema.children[2]->format, "b");
  EXPECT_STREQ(schema.children[3]->format, "U");
  // One pair: "unit" (4 characters), "ns" (2).
  const char* metadata = schema.children[1]->metadata;
  ASSERT_NE(metadata, nullptr);
  int32_t numbers[2];
  std::memcpy(numbers, metadata, sizeof(numbers));
  EXPECT_EQ(numbers[0], 1);
  EXPECT_EQ(numbers[1], 4);
  EXPECT_EQ(std::string(metadata + 8, 4), "unit");
  EXPECT_EQ(std::string(metadata + 16, 2), "ns");
  schema.release(&schema);
  EXPECT_EQ(schema.release, nullptr);
}

TEST(ArrowExportTest, NumbersAreWhereTheyWereAndNullsAreBits) {
  const Table table = Sample();
  ArrowArray array;
  ExportArray(table, &array);
  EXPECT_EQ(array.length, 10);
  const ArrowArray& ranks = *array.children[0];
  EXPECT_EQ(ranks.buffers[0], nullptr);
  EXPECT_EQ(ranks.buffers[1], table.columns[0].values->data);
  const ArrowArray& waits = *array.children[1];
  EXPECT_EQ(waits.null_count, 4);
  const auto* validity = static_cast<const uint8_t*>(waits.buffers[0]);
  EXPECT_EQ(validity[0], 0b10110110);
  EXPECT_EQ(validity[1], 0b01);
  const auto* chronic = static_cast<const uint8_t*>(array.children[2]->buffers[1]);
  EXPECT_EQ(chronic[0], 0b10101010);
  EXPECT_EQ(chronic[1], 0b10);
  array.release(&array);
}

TEST(ArrowExportTest, AnArrayOutlivesItsTable) {
  ArrowArray array;
  ExportArray(Sample(), &array);
  EXPECT_EQ(static_cast<const int64_t*>(array.children[0]->buffers[1])[9], 9);
  array.release(&array);
}

TEST(ArrowExportTest, AChildMayBeTakenAway) {
  ArrowArray array;
  ExportArray(Sample(), &array);
  ArrowArray taken = *array.children[0];
  array.children[0]->release = nullptr;  // As the specification has it: moved.
  array.release(&array);
  EXPECT_EQ(static_cast<const int64_t*>(taken.buffers[1])[3], 3);
  taken.release(&taken);
}

TEST(ArrowExportTest, AStreamEndsAfterItsTables) {
  ArrowArrayStream stream;
  ExportStream({std::make_shared<const Table>(Sample()), std::make_shared<const Table>(Sample())}, &stream);
  ArrowSchema schema;
  ASSERT_EQ(stream.get_schema(&stream, &schema), 0);
  EXPECT_EQ(schema.n_children, 4);
  schema.release(&schema);
  ArrowArray array;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(stream.get_next(&stream, &array), 0);
    EXPECT_EQ(array.length, 10);
    array.release(&array);
  }
  ASSERT_EQ(stream.get_next(&stream, &array), 0);
  EXPECT_EQ(array.release, nullptr);
  EXPECT_EQ(stream.get_last_error(&stream), nullptr);
  stream.release(&stream);
}

TEST(ArrowExportTest, ATableOfNoRowsHasBuffersAllTheSame) {
  TableBuilder builder("empty", {{"host", Kind::kText}, {"wait_ns", Kind::kInt64, "ns", true}});
  ArrowArray array;
  ExportArray(std::move(builder).Finish(), &array);
  EXPECT_EQ(array.length, 0);
  EXPECT_NE(array.children[0]->buffers[1], nullptr);
  EXPECT_NE(array.children[0]->buffers[2], nullptr);
  EXPECT_NE(array.children[1]->buffers[1], nullptr);
  array.release(&array);
}

}  // namespace
}  // namespace lockstep::python
