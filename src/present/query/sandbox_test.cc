#include "present/query/sandbox.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "present/query/testing/asked_run.h"

namespace lockstep::query {
namespace {

using testing::AskedRun;
using testing::RandomRun;
using Kind = QueryError::Kind;

QueryLimits Tight() {
  QueryLimits limits;
  limits.timeout = std::chrono::milliseconds(500);
  limits.memory_bytes = 64 << 20;
  return limits;
}

// An empty folder that is the working directory while this lives.
class EmptyFolder {
 public:
  EmptyFolder() : before_(std::filesystem::current_path()) {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep_query_XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) folder_ = name;
    std::filesystem::current_path(folder_);
  }
  ~EmptyFolder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }
  EmptyFolder(const EmptyFolder&) = delete;
  EmptyFolder& operator=(const EmptyFolder&) = delete;
  bool empty() const { return std::filesystem::is_empty(folder_); }
  const std::filesystem::path& path() const { return folder_; }

 private:
  std::filesystem::path before_;
  std::filesystem::path folder_;
};

TEST(SandboxTest, NothingThatWritesOrReadsFilesIsAllowed) {
  EmptyFolder folder;
  std::ofstream(folder.path() / "secret.db") << "SQLite format 3";
  AskedRun asked(RandomRun(1), Tight());
  for (const char* sql : {"ATTACH 'secret.db' AS other",
                          "ATTACH 'new.db' AS other",
                          "ATTACH ':memory:' AS other",
                          "DETACH main",
                          "VACUUM INTO 'copy.db'",
                          "VACUUM",
                          "SELECT load_extension('./evil.so')",
                          "SELECT load_extension('a', 'b')",
                          "SELECT writefile('out', 'x')",
                          "SELECT readfile('secret.db')",
                          "SELECT edit('x')",
                          "SELECT fts3_tokenizer('simple', x'0000000000000000')",
                          "CREATE TABLE t(x)",
                          "CREATE TEMP TABLE t(x)",
                          "CREATE VIRTUAL TABLE t USING fts5(x)",
                          "CREATE VIRTUAL TABLE t USING events",
                          "CREATE VIEW v AS SELECT 1",
                          "CREATE TEMP TRIGGER t AFTER INSERT ON events BEGIN SELECT 1; END",
                          "CREATE INDEX i ON events(rank)",
                          "DROP TABLE events",
                          "ALTER TABLE events RENAME TO e",
                          "INSERT INTO events(rank) VALUES (1)",
                          "UPDATE events SET rank = 1",
                          "DELETE FROM events",
                          "REPLACE INTO ranks(rank) VALUES (1)",
                          "PRAGMA writable_schema = ON",
                          "PRAGMA journal_mode = OFF",
                          "PRAGMA temp_store = FILE",
                          "PRAGMA temp_store_directory = '.'",
                          "PRAGMA data_store_directory",
                          "PRAGMA trusted_schema = ON",
                          "PRAGMA hard_heap_limit = 0",
                          "PRAGMA database_list",
                          "PRAGMA cell_size_check",
                          "PRAGMA main.user_version = 7",
                          "SELECT file FROM pragma_database_list",
                          "SELECT * FROM pragma_compile_options",
                          "SELECT * FROM dbstat",
                          "SELECT data FROM sqlite_dbpage",
                          "SELECT sql FROM sqlite_master",
                          "SELECT * FROM sqlite_stmt",
                          "SELECT * FROM sqlite_schema",
                          "BEGIN",
                          "COMMIT",
                          "SAVEPOINT s",
                          "REINDEX",
                          "ANALYZE",
                          "EXPLAIN ATTACH 'x' AS y",
                          "SELECT sqlite_compileoption_get(1)",
                          "SELECT randomblob(10)",
                          "SELECT changes()",
                          "SELECT last_insert_rowid()",
                          "WITH x AS (SELECT 1) INSERT INTO ranks SELECT * FROM x"}) {
    EXPECT_TRUE(asked.Ask(sql).empty()) << sql;
    ASSERT_TRUE(asked.error()) << sql;
    EXPECT_EQ(asked.error()->kind, Kind::kStatement) << sql << ": " << asked.error()->message;
  }
  EXPECT_EQ(asked.AskOne("SELECT count(*) > 0 FROM events"), "1");  // and the connection still answers
  std::filesystem::remove(folder.path() / "secret.db");
  EXPECT_TRUE(folder.empty());
}

TEST(SandboxTest, RefusalsSayWhatIsRefused) {
  AskedRun asked(RandomRun(1), Tight());
  asked.Ask("ATTACH 'x' AS y");
  EXPECT_NE(asked.error()->message.find("ATTACH"), std::string::npos) << asked.error()->message;
  asked.Ask("PRAGMA writable_schema = ON");
  EXPECT_NE(asked.error()->message.find("PRAGMA"), std::string::npos) << asked.error()->message;
  asked.Ask("DELETE FROM events");
  EXPECT_TRUE(asked.error());
}

TEST(SandboxTest, OneStatementAtATime) {
  AskedRun asked(RandomRun(1), Tight());
  asked.Ask("SELECT 1; SELECT 2");
  ASSERT_TRUE(asked.error());
  EXPECT_EQ(asked.error()->offset, 9u);
  asked.Ask("SELECT 1; DROP TABLE events");
  EXPECT_TRUE(asked.error());
  EXPECT_EQ(asked.AskOne("SELECT 1 -- only one\n; /* more */ "), "1");
  asked.Ask("  ");
  EXPECT_TRUE(asked.error());
}

TEST(SandboxTest, EndlessQueriesEndAtTheTimeout) {
  AskedRun asked(RandomRun(1), Tight());
  for (const char* sql : {"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
                          "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x < 0",
                          "SELECT count(*) FROM events a, events b, events c, events d",
                          "SELECT count(*) FROM events a, events b, events c WHERE a.duration_ns + b.duration_ns < "
                          "c.duration_ns - 9e9"}) {
    asked.Ask(sql);
    ASSERT_TRUE(asked.error()) << sql;
    EXPECT_EQ(asked.error()->kind, Kind::kTimeout) << sql << ": " << asked.error()->message;
  }
  EXPECT_EQ(asked.AskOne("SELECT 1"), "1");
}

TEST(SandboxTest, AScanWithoutAMatchEndsWhenItIsStopped) {
  AskedRun asked(RandomRun(1, 3000), Tight());
  asked.database().stop().Arm(StopSign::Clock::now() - std::chrono::seconds(1));
  EXPECT_TRUE(asked.database().stop().Check());
  EXPECT_TRUE(asked.database().stop().timed_out());
  EXPECT_EQ(asked.AskOne("SELECT count(*) FROM events WHERE duration_ns > 1000000"), "0");  // armed anew
}

TEST(SandboxTest, MemoryEndsAtItsLimit) {
  QueryLimits limits = Tight();
  limits.timeout = std::chrono::hours(1);  // Not to be reached on a machine however slow.
  limits.memory_bytes = 5 << 20;
  AskedRun asked(RandomRun(1), limits);
  const std::string numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1000000) ";
  for (const char* rest :
       {"SELECT count(*) FROM (SELECT x FROM c ORDER BY -x LIMIT 900000)", "SELECT median(x) FROM c",
        "SELECT union_ns(x, x + 1) FROM c", "SELECT count(DISTINCT x) FROM c",
        "SELECT length(group_concat(x, 'abcdefghijklmnop')) FROM c", "SELECT json_group_array(x) FROM c"}) {
    asked.Ask(numbers + rest);
    ASSERT_TRUE(asked.error()) << rest;
    // Texts reach their own limit first.
    EXPECT_TRUE(asked.error()->kind == Kind::kMemory || asked.error()->message.find("too big") != std::string::npos)
        << rest << ": " << asked.error()->message;
  }
  EXPECT_EQ(asked.AskOne("SELECT 1"), "1");
}

TEST(SandboxTest, HugeValuesAndDeepNestingAreRefused) {
  AskedRun asked(RandomRun(1), Tight());
  std::string sums = "SELECT 1";
  for (int i = 0; i < 5000; ++i) sums += "+1";
  const std::string brackets = "SELECT " + std::string(5000, '(') + "1" + std::string(5000, ')');
  std::string selects = "SELECT 1";
  for (int i = 0; i < 1000; ++i) selects += " UNION SELECT 1";
  std::string nested = "SELECT 1";
  for (int i = 0; i < 300; ++i) nested = "SELECT * FROM (" + nested + ")";
  std::string joins = "SELECT 1 FROM ranks";
  for (int i = 0; i < 100; ++i) joins += ", ranks r" + std::to_string(i);
  for (const std::string& sql :
       {std::string("SELECT zeroblob(1000000000)"),
        std::string("SELECT replace(hex(zeroblob(8000000)), '0', 'abcdefghijkl')"), sums, brackets, selects, nested,
        joins, "SELECT '" + std::string(300 << 10, 'x') + "'",
        std::string("SELECT 'a' LIKE '") + std::string(2000, '%') + "b'", std::string("SELECT 1e999999999 || "),
        std::string("SELECT \x01\xff"), std::string("SELECT 1\0 + 1 FROM", 17)}) {
    EXPECT_TRUE(asked.Ask(sql).empty());
    ASSERT_TRUE(asked.error()) << sql.substr(0, 60);
  }
  EXPECT_EQ(asked.AskOne("SELECT 1"), "1");
}

TEST(SandboxTest, SortingLargeResultsMakesNoFiles) {
  EmptyFolder folder;
  QueryLimits limits;
  AskedRun asked(RandomRun(1), limits);
  EXPECT_EQ(asked.AskOne("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 400000) "
                         "SELECT count(*) FROM (SELECT x FROM c ORDER BY x % 1000, printf('%40d', x))"),
            "400000");
  EXPECT_TRUE(folder.empty());
}

TEST(SandboxTest, WhatPeopleNeedIsAllowed) {
  AskedRun asked(RandomRun(1), Tight());
  for (const char* sql :
       {"SELECT count(*) FROM events", "WITH x AS (SELECT 1 AS a) SELECT count(*) FROM x",
        "SELECT rank, row_number() OVER (PARTITION BY rank ORDER BY start_ns) FROM kernels LIMIT 3",
        "SELECT value FROM findings, json_each(findings.advice)", "PRAGMA table_info(events)",
        "EXPLAIN QUERY PLAN SELECT * FROM events", "SELECT name FROM events WHERE name LIKE '%gemm%' LIMIT 1",
        "SELECT name FROM events WHERE name GLOB 'gemm*' LIMIT 1", "VALUES (1, 2), (3, 4)",
        "SELECT * FROM ranks UNION ALL SELECT * FROM ranks", "SELECT lag(start_ns) OVER (ORDER BY id) FROM kernels",
        "SELECT json_extract('{\"a\": 1}', '$.a')",
        "SELECT median(duration_ns), percentile(duration_ns, 99) FROM kernels"}) {
    asked.Ask(sql);
    EXPECT_FALSE(asked.error()) << sql << ": " << (asked.error() ? asked.error()->message : "");
  }
}

}  // namespace
}  // namespace lockstep::query
