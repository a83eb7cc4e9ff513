#include "programs/python/query_table.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <limits>
#include <string>
#include <utility>

#include "base/cell.h"
#include "base/testing/checkout.h"
#include "programs/python/loaded_run.h"

namespace lockstep::python {
namespace {

TEST(QueryTableTest, AColumnIsWhatItsValuesAre) {
  QueryTable rows;
  rows.Begin({"rank", "mean_ns", "name", "nothing", "mixed"});
  rows.Row({Cell(int64_t{1}), Cell(2.5), Cell(std::string("gemm")), Cell(), Cell(int64_t{3})});
  rows.Row({Cell(int64_t{2}), Cell(int64_t{4}), Cell(), Cell(), Cell(std::string("x"))});
  const Table table = std::move(rows).Finish();
  EXPECT_EQ(table.row_count, 2u);
  EXPECT_EQ(table.columns[0].values->kind, Kind::kInt64);
  EXPECT_FALSE(table.columns[0].nullable);
  EXPECT_EQ(table.columns[1].values->kind, Kind::kFloat64);
  EXPECT_EQ(table.columns[1].unit, "ns");
  EXPECT_EQ(table.columns[1].values->Value<double>(1), 4.0);
  EXPECT_EQ(table.columns[2].values->kind, Kind::kText);
  EXPECT_TRUE(table.columns[2].values->IsNull(1));
  EXPECT_EQ(table.columns[3].values->null_count, 2u);
  EXPECT_EQ(table.columns[4].values->Text(0), "3");
  EXPECT_EQ(table.columns[4].values->Text(1), "x");
}

TEST(QueryTableTest, NumbersThatAreNotFiniteAreNull) {
  QueryTable rows;
  rows.Begin({"x"});
  rows.Row({Cell(1.0)});
  rows.Row({Cell(std::numeric_limits<double>::infinity())});
  const Table table = std::move(rows).Finish();
  EXPECT_TRUE(table.columns[0].nullable);
  EXPECT_TRUE(table.columns[0].values->IsNull(1));
}

TEST(QueryTableTest, ColumnsOfOneNameAreKeptApart) {
  QueryTable rows;
  rows.Begin({"rank", "rank"});
  const Table table = std::move(rows).Finish();
  EXPECT_EQ(table.columns[0].name, "rank");
  EXPECT_EQ(table.columns[1].name, "rank_2");
  EXPECT_EQ(table.row_count, 0u);
}

class QueryRunTest : public ::testing::Test {
 protected:
  std::shared_ptr<LoadedRun> Load(LoadOptions options = {}) {
    return *LoadedRun::Load({(Checkout() / "examples/recorded").string()}, std::move(options));
  }
  QueryCancel cancel_;
};

TEST_F(QueryRunTest, WrongSqlIsToldWithNamesAndPlace) {
  const auto answer = Load()->Query("SELECT spam_ns FROM steps", {}, &cancel_);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(answer.error().message.find("span_ns"), std::string::npos);
  EXPECT_NE(answer.error().message.find("\n       ^"), std::string::npos);
}

TEST_F(QueryRunTest, TheLimitOfMemoryIsPutBack) {
  const auto run = Load();
  const sqlite3_int64 before = sqlite3_hard_heap_limit64(int64_t{123} << 20);
  query::QueryLimits limits;
  limits.memory_bytes = int64_t{64} << 20;
  EXPECT_TRUE(run->Query("SELECT count(*) FROM events", limits, &cancel_));
  EXPECT_EQ(sqlite3_hard_heap_limit64(before), int64_t{123} << 20);
}

TEST_F(QueryRunTest, TablesOfPassesThatWereLeftOutAreRefused) {
  LoadOptions options;
  options.passes = {"kernels"};
  const auto run = Load(std::move(options));
  EXPECT_TRUE(run->Query("SELECT * FROM kernel_totals", {}, &cancel_));
  EXPECT_TRUE(run->Query("SELECT count(*) FROM events", {}, &cancel_));
  EXPECT_EQ(run->Query("SELECT * FROM queues", {}, &cancel_).error().code, ErrorCode::kFailedPrecondition);
}

}  // namespace
}  // namespace lockstep::python
