#include "programs/python/column_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace lockstep::python {
namespace {

TEST(ColumnBuilderTest, NullsAreMarkedAndHoldTheirPlace) {
  ColumnBuilder column({"wait_ns", Kind::kInt64, "ns", true});
  column.Int(5);
  column.Null();
  column.Int(7);
  const Field field = std::move(column).Finish();
  EXPECT_EQ(field.unit, "ns");
  EXPECT_TRUE(field.nullable);
  ASSERT_EQ(field.values->length, 3u);
  EXPECT_EQ(field.values->null_count, 1u);
  EXPECT_FALSE(field.values->IsNull(0));
  EXPECT_TRUE(field.values->IsNull(1));
  EXPECT_EQ(field.values->Value<int64_t>(2), 7);
}

TEST(ColumnBuilderTest, ANullWhereNoneWasDeclaredIsRefused) {
  ColumnBuilder column({"rank", Kind::kInt64});
  EXPECT_THROW(column.Null(), std::logic_error);
}

TEST(ColumnBuilderTest, NumbersThatAreNotFiniteAreNull) {
  ColumnBuilder column({"ratio", Kind::kFloat64, "0..1", true});
  column.Double(std::numeric_limits<double>::infinity());
  column.Double(std::numeric_limits<double>::quiet_NaN());
  column.Double(0.5);
  const Field field = std::move(column).Finish();
  EXPECT_EQ(field.values->null_count, 2u);
  EXPECT_TRUE(field.values->Value<double>(0) != field.values->Value<double>(0));
}

TEST(ColumnBuilderTest, TextsAreOffsetsIntoOneBlockOfValidUtf8) {
  ColumnBuilder column({"name", Kind::kText, "", true});
  column.Text("gemm");
  column.Text("");
  column.Null();
  column.Text("a\xff");
  const Field field = std::move(column).Finish();
  EXPECT_EQ(field.values->Text(0), "gemm");
  EXPECT_EQ(field.values->Text(1), "");
  EXPECT_TRUE(field.values->IsNull(2));
  EXPECT_EQ(field.values->Text(3), "a\xEF\xBF\xBD");
}

TEST(ColumnBuilderTest, ListsAndStructsNest) {
  ColumnBuilder column({"activities",
                        Kind::kList,
                        "",
                        false,
                        {{"item", Kind::kStruct, "", false, {{"name", Kind::kText}, {"excess_ns", Kind::kInt64}}}}});
  ColumnBuilder& item = column.child(0);
  for (const int64_t excess_ns : {3, 4}) {
    item.child(0).Text("data loading");
    item.child(1).Int(excess_ns);
    item.End();
  }
  column.End();
  column.End();  // An empty list.
  const Field field = std::move(column).Finish();
  ASSERT_EQ(field.values->length, 2u);
  EXPECT_EQ(field.values->offsets[1], 2);
  EXPECT_EQ(field.values->offsets[2], 2);
  const Array& items = *field.values->children[0].values;
  EXPECT_EQ(items.length, 2u);
  EXPECT_EQ(items.children[1].values->Value<int64_t>(1), 4);
}

TEST(ColumnBuilderTest, AStructThatIsNullHoldsAPlaceInEveryField) {
  ColumnBuilder column({"worst", Kind::kStruct, "", true, {{"group", Kind::kText}, {"sequence", Kind::kInt64}}});
  column.Null();
  column.child(0).Text("default");
  column.child(1).Int(9);
  column.End();
  const Field field = std::move(column).Finish();
  EXPECT_TRUE(field.values->IsNull(0));
  EXPECT_FALSE(field.values->IsNull(1));
  EXPECT_EQ(field.values->children[1].values->length, 2u);
  EXPECT_EQ(field.values->children[1].values->Value<int64_t>(1), 9);
}

TEST(TableTest, ColumnsAreFoundByName) {
  TableBuilder builder("ranks", {{"rank", Kind::kInt64}, {"host", Kind::kText}});
  builder[0].Int(3);
  builder[1].Text("node0");
  const Table table = std::move(builder).Finish();
  EXPECT_EQ(table.row_count, 1u);
  ASSERT_NE(table.Find("host"), nullptr);
  EXPECT_EQ(table.Find("host")->values->Text(0), "node0");
  EXPECT_EQ(table.Find("device"), nullptr);
}

}  // namespace
}  // namespace lockstep::python
