#include "base/proc_stat.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

TEST(ProcStatTest, FieldsAreFoundBehindAnyName) {
  const std::string rest = " S 41 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 987654 22";
  for (const char* name : {"(python)", "(a b)", "(x) S 1 1 1 (y)", "())"}) {
    const auto stat = ParseProcStat("7 " + std::string(name) + rest);
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->state, 'S') << name;
    EXPECT_EQ(stat->parent_pid, 41) << name;
    EXPECT_EQ(stat->start_ticks, 987654u) << name;
    EXPECT_EQ(stat->wait_status, std::nullopt) << name;
  }
  const std::string zombie = "7 (x) Z 41 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 987654 22";
  std::string whole = zombie;
  for (int field = 24; field <= 51; ++field) whole += " 0";
  EXPECT_EQ(ParseProcStat(whole + " 139\n")->wait_status, 139);
  EXPECT_EQ(ParseProcStat(zombie)->wait_status, std::nullopt);
  EXPECT_EQ(ParseProcStat(zombie)->start_ticks, 987654u);
  EXPECT_FALSE(ParseProcStat(whole + " x"));
  EXPECT_FALSE(ParseProcStat(""));
  EXPECT_FALSE(ParseProcStat("7 (python) S 41"));
  EXPECT_FALSE(ParseProcStat("7 (python) S x 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21"));
}

TEST(ProcStatTest, NumbersAreThoseOfProc) {
  const std::string numbers = "S 1 2 3 4 5 6 7 8 9 10 700 33 0 0 20 0 12 0 4711 1000000 250 0";
  for (const std::string name : {"python", "a) R 1 (b", "1 2 3) x"}) {
    const auto stat = ParseProcStat("42 (" + name + ") " + numbers);
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->name, name);
    EXPECT_EQ(stat->cpu_ticks, 733u);
    EXPECT_EQ(stat->thread_count, 12u);
    EXPECT_EQ(stat->start_ticks, 4711u);
    EXPECT_EQ(stat->resident_pages, 250u);
  }
  for (const char* text :
       {"12", "12 (a", "12 (a) S 1", ")(", "12 (a) S 1 12 12 0 -1 4194560 1 2 3 4 x 7 0 0 20 0 3 0 9"})
    EXPECT_FALSE(ParseProcStat(text)) << text;
}

}  // namespace
}  // namespace lockstep
