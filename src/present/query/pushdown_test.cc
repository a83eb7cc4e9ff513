// What scans decide themselves must change no answer: the same query over a subquery with a LIMIT, which SQLite does
// not look into, gives the same rows.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "present/query/tables.h"
#include "present/query/testing/asked_run.h"

namespace lockstep::query {
namespace {

using testing::AskedRun;
using testing::RandomRun;
using testing::Rows;

class QueryMaker {
 public:
  QueryMaker(AskedRun& asked, uint32_t seed) : asked_(asked), random_(seed) {}

  // A column and a value that some row has there, or one near it.
  std::string Value(const std::string& table, const std::string& column) {
    const auto [found, is_new] = values_.try_emplace(column);
    Rows& rows = found->second;
    if (is_new) rows = asked_.Ask(fmt::format("SELECT quote({0}) FROM {1}", column, table));
    const std::string value = rows.empty() ? "NULL" : rows[random_() % rows.size()][0];
    switch (Below(8)) {
      case 0: return "NULL";
      case 1: return "'nothing like it'";
      case 2: return value + " + 1";
      case 3: return value + " - 0.5";
      case 4: return fmt::format("CAST({} AS TEXT)", value);
      default: return value;
    }
  }

  std::string Condition() const {
    std::string text;
    for (const auto& [column, op, value] : parts_) {
      text += fmt::format("{}{} {} {}", text.empty() ? "" : " AND ", column, op, value);
    }
    return text;
  }

  void Choose(const Table& table) {
    static constexpr const char* kOperators[] = {"=", "=", "=", "<", "<=", ">", ">=", "IS", "IN"};
    parts_.clear();
    const auto& columns = table.spec().columns;
    const int count = 1 + Below(3);
    for (int i = 0; i < count; ++i) {
      const std::string column(columns[static_cast<size_t>(Below(static_cast<int>(columns.size())))].name);
      const std::string op = kOperators[Below(9)];
      const std::string name(table.spec().name);
      std::string value = Value(name, column);
      if (op == "IN") value = fmt::format("({}, {})", value, Value(name, column));
      parts_.push_back({column, op, value});
    }
  }

 private:
  struct Part {
    std::string column, op, value;
  };
  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }

  AskedRun& asked_;
  std::mt19937 random_;
  std::map<std::string, Rows> values_;  ///< Of each column that was asked for.
  std::vector<Part> parts_;
};

void ExpectSameRows(AskedRun& asked, const Table& table, int rounds, uint32_t seed) {
  QueryMaker maker(asked, seed);
  int with_rows = 0;
  for (int round = 0; round < rounds; ++round) {
    maker.Choose(table);
    const std::string condition = maker.Condition();
    const auto ask = [&](const std::string& from) {
      Rows rows = asked.Ask(fmt::format("SELECT * FROM {} WHERE {}", from, condition));
      EXPECT_FALSE(asked.error()) << asked.error()->message << ": " << condition;
      std::sort(rows.begin(), rows.end());
      return rows;
    };
    const std::string name(table.spec().name);
    const Rows decided = ask(name);
    ASSERT_EQ(decided, ask(fmt::format("(SELECT * FROM {} LIMIT -1)", name))) << name << " WHERE " << condition;
    with_rows += decided.empty() ? 0 : 1;
  }
  const bool has_rows = asked.AskOne(fmt::format("SELECT count(*) FROM {}", table.spec().name)) != "0";
  EXPECT_TRUE(!has_rows || with_rows > rounds / 20) << table.spec().name;
}

TEST(PushdownTest, ScansOfEventsDecideAsSqliteDoes) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    AskedRun asked(RandomRun(seed));
    ExpectSameRows(asked, *FindTable("events"), 150, seed);
    ExpectSameRows(asked, *FindTable("kernels"), 150, seed + 100);
  }
}

TEST(PushdownTest, ScansOfEveryOtherTableDecideAsSqliteDoes) {
  AskedRun asked(RandomRun(9));
  for (const auto& table : AllTables()) ExpectSameRows(asked, *table, 40, 7);
}

TEST(PushdownTest, BlocksThatEndTooEarlyAreSkippedAndNothingElse) {
  AskedRun asked(RandomRun(3, 1500));  // several blocks of Source::kBlockSize on a track
  for (const int64_t offset : {0, 1, 500, 2000, 3999, 4500}) {
    const int64_t bound_ns = 1'700'000'000'000'000'000 + offset;
    const auto count = [&](const char* plus) {
      return asked.AskOne(
          fmt::format("SELECT count(*) FROM events WHERE {0}end_ns > {1} AND {0}start_ns < {1} + 5", plus, bound_ns));
    };
    EXPECT_EQ(count(""), count("+")) << offset;
  }
}

void ExpectOrder(AskedRun& asked) {
  for (const char* sql :
       {"SELECT id FROM events ORDER BY id", "SELECT track FROM events ORDER BY track",
        "SELECT rank FROM events ORDER BY rank", "SELECT window FROM kernels ORDER BY window",
        "SELECT rank FROM steps ORDER BY rank", "SELECT rank FROM memory_events ORDER BY rank",
        "SELECT trace_start_ns FROM events WHERE track = 3 ORDER BY trace_start_ns",
        "SELECT trace_start_ns FROM events WHERE track IN (5, 3) ORDER BY trace_start_ns",
        "SELECT window FROM memory_events ORDER BY window", "SELECT window FROM steps ORDER BY window",
        "SELECT instance FROM collectives ORDER BY instance"}) {
    const Rows rows = asked.Ask(sql);
    ASSERT_FALSE(asked.error()) << sql;
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
      return std::stoll(a[0]) < std::stoll(b[0]);
    })) << sql;
  }
}

TEST(PushdownTest, OrderThatScansPromiseIsTheOrderOfRows) {
  AskedRun asked(RandomRun(5));
  ExpectOrder(asked);
  model::Run one_window = RandomRun(6);
  one_window.ranks.resize(3);
  AskedRun narrow(std::move(one_window));
  ExpectOrder(narrow);
  EXPECT_EQ(narrow.Ask("EXPLAIN QUERY PLAN SELECT rank, sum(duration_ns) FROM events GROUP BY rank").size(), 1u);
  EXPECT_EQ(narrow.Ask("EXPLAIN QUERY PLAN SELECT rank, sum(busy_ns) FROM steps GROUP BY rank").size(), 1u);
}

TEST(PushdownTest, RowsOfATrackComeWithoutAScanOfTheOthers) {
  AskedRun asked(RandomRun(5));
  const Rows plan = asked.Ask("EXPLAIN QUERY PLAN SELECT * FROM events WHERE track = 3 ORDER BY trace_start_ns");
  ASSERT_EQ(plan.size(), 1u);  // no sorting
}

}  // namespace
}  // namespace lockstep::query
