#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/checkout.h"
#include "node/control/discovery/hosts.h"

namespace lockstep::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Names(std::string_view text) {
  const auto names = ExpandHostlist(text);
  EXPECT_TRUE(names) << names.error().ToString();
  return names ? *names : std::vector<std::string>{"(error)"};
}

ErrorCode CodeOf(std::string_view text) {
  const auto names = ExpandHostlist(text);
  EXPECT_FALSE(names) << text;
  return names ? ErrorCode::kIo : names.error().code;
}

TEST(HostlistTest, TextBehindTheLastBracketBelongsToTheName) {
  EXPECT_THAT(Names("n[1-2]-ib0,gpu[1-2].cluster.local"),
              ElementsAre("n1-ib0", "n2-ib0", "gpu1.cluster.local", "gpu2.cluster.local"));
}

TEST(HostlistTest, WidthIsThatOfTheLowerBound) {
  EXPECT_THAT(Names("n[08-11],m[9-11],k[001-3]"),
              ElementsAre("n08", "n09", "n10", "n11", "m9", "m10", "m11", "k001", "k002", "k003"));
}

TEST(HostlistTest, KeepsTheOrderAndDropsDuplicates) {
  EXPECT_THAT(Names("n2,n1,n[1-3]"), ElementsAre("n2", "n1", "n3"));
}

TEST(HostlistTest, CommasWithoutANameAreNothing) {
  EXPECT_THAT(Names(""), IsEmpty());
  EXPECT_THAT(Names(",a,,b,"), ElementsAre("a", "b"));
}

TEST(HostlistTest, RefusesWhatIsNoList) {
  for (const char* text : {"n[3-1]", "n[a-c]", "n[1-", "n[", "n]", "n[]", "n[1-]", "n[-1]", "n[1,]", "n[1[2]]", "n 1",
                           "n[1 -2]", "a\nb", "n[1-2-3]", "n[1234567890123456789]"}) {
    EXPECT_EQ(CodeOf(text), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(HostlistTest, ErrorSaysWhere) {
  const auto names = ExpandHostlist("a,n[3-1]");
  ASSERT_FALSE(names);
  EXPECT_THAT(names.error().message, HasSubstr("character 6: a range that runs backwards"));
}

TEST(HostlistTest, StopsAt65536Names) {
  EXPECT_EQ(Names("n[1-65536]").size(), 65536u);
  EXPECT_EQ(CodeOf("n[1-65537]"), ErrorCode::kLimitExceeded);
  EXPECT_EQ(CodeOf("n[0-999999999999999999]"), ErrorCode::kLimitExceeded);
  EXPECT_EQ(CodeOf("n[1-300][1-300]"), ErrorCode::kLimitExceeded);
  EXPECT_EQ(CodeOf("n[1-65536],m"), ErrorCode::kLimitExceeded);
  EXPECT_EQ(CodeOf("n[1-65536],n[1-65536]"), ErrorCode::kLimitExceeded);
  EXPECT_EQ(CodeOf(std::string(2000, 'n')), ErrorCode::kLimitExceeded);
}

// The recorded tables: "$ scontrol show hostnames EXPRESSION", then a name a line.
std::vector<std::pair<std::string, std::vector<std::string>>> RecordedTables(const std::filesystem::path& path) {
  std::vector<std::pair<std::string, std::vector<std::string>>> tables;
  std::ifstream file(path);
  const std::string prompt = "$ scontrol show hostnames ";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(prompt)) {
      tables.push_back({line.substr(prompt.size()), {}});
    } else if (!tables.empty()) {
      tables.back().second.push_back(line);
    }
  }
  return tables;
}

// SLURM's own answers. It keeps duplicates, and refuses text behind a bracket; we do not.
TEST(HostlistTest, AgreesWithSlurm) {
  const std::filesystem::path root = SharedData();
  const std::filesystem::path folder = root / "schedulers/slurm";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "recorded scheduler outputs are absent; set LOCKSTEP_DATA";
  auto tables = RecordedTables(folder / "hostlist-expand.txt");
  const auto more = RecordedTables(folder / "scontrol-hostnames.txt");
  tables.insert(tables.end(), more.begin(), more.end());
  size_t compared = 0;
  for (auto& [expression, expected] : tables) {
    SCOPED_TRACE(expression);
    if (expression == "n[1-2]-ib0" || expression == "gpu[1-2].cluster.local") continue;
    // Its last group runs slowest there; ours fastest. The names are the same.
    const bool refused = expected.empty() || expected.back().starts_with("Invalid hostlist");
    if (refused || expression == "n[1-") {
      EXPECT_EQ(CodeOf(expression), ErrorCode::kInvalidArgument);
    } else if (expression == "r[1-2]c[01-02]n[1-2]") {
      EXPECT_THAT(Names(expression), ::testing::UnorderedElementsAreArray(expected));
    } else {
      std::vector<std::string> unique;
      for (const std::string& name : expected) {
        if (std::find(unique.begin(), unique.end(), name) == unique.end()) unique.push_back(name);
      }
      EXPECT_THAT(Names(expression), ::testing::ElementsAreArray(unique));
    }
    ++compared;
  }
  EXPECT_GE(compared, 15u);

  // What it folds, we unfold: "$ scontrol show hostlist NAMES" and the folded list.
  std::ifstream folds(folder / "hostlist-fold.txt");
  size_t folded = 0;
  for (std::string command, list; std::getline(folds, command) && std::getline(folds, list); ++folded) {
    const std::string names = command.substr(command.rfind(' ') + 1);
    EXPECT_THAT(Names(list), ::testing::UnorderedElementsAreArray(Names(names))) << command;
  }
  EXPECT_GE(folded, 10u);
}

}  // namespace
}  // namespace lockstep::control
