#include "ingest/nsight/launch_manifest.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "ingest/nsight/database_for_test.h"

namespace lockstep::ingest::nsight {
namespace {

using test::TestFolder;
using testing::ElementsAre;

class LaunchManifestTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_.File(name)) << text; }
  TraceContent Read(const std::string& name, std::optional<int32_t> own_rank = {}) {
    std::vector<TraceContent> contents(1);
    contents[0].has_rank = own_rank.has_value();
    contents[0].trace.rank = {own_rank.value_or(0)};
    TakeLaunchManifest(folder_.File(name), &contents);
    return std::move(contents[0]);
  }

 private:
  TestFolder folder_;
};

TEST_F(LaunchManifestTest, TheManifestBesideAReportSaysWhoseItIs) {
  Write("job.launch", R"({"format":"lockstep-launch","version":1,"rank":5,"world_size":8,"host":"n7",)"
                      R"("files":["job.nsys-rep"]})");
  for (const char* report : {"job.nsys-rep", "job.sqlite"}) {
    const TraceContent content = Read(report);
    EXPECT_TRUE(content.has_rank);
    EXPECT_EQ(content.trace.rank.value, 5);
    EXPECT_EQ(content.trace.world_size, 8);
    EXPECT_EQ(content.trace.host, "n7");
    EXPECT_TRUE(content.ledger.entries().empty());
  }
  EXPECT_FALSE(Read("other.sqlite").has_rank);
}

TEST_F(LaunchManifestTest, ItIsBelievedBeforeTheReportAndSaysSo) {
  Write("job.launch", R"({"format":"lockstep-launch","rank":5,"world_size":null,"files":[]})");
  const TraceContent content = Read("job.sqlite", 3);
  EXPECT_EQ(content.trace.rank.value, 5);
  ASSERT_EQ(content.ledger.entries().size(), 1u);
  EXPECT_EQ(content.ledger.entries()[0].code, "rank_disagreement");
  EXPECT_TRUE(Read("job.sqlite", 5).ledger.entries().empty());
}

TEST_F(LaunchManifestTest, WhatIsNoManifestOfThisReportIsNotBelieved) {
  for (const char* text : {"", "{", R"({"rank":5})", R"({"format":"lockstep-launch","rank":-1})",
                           R"({"format":"lockstep-launch","rank":9,"world_size":4})",
                           R"({"format":"lockstep-launch","rank":5,"files":["elsewhere.nsys-rep"]})"}) {
    Write("job.launch", text);
    EXPECT_FALSE(Read("job.sqlite").has_rank) << text;
  }
  Write("job.launch", std::string(100'000, ' '));
  EXPECT_FALSE(Read("job.sqlite").has_rank);
}

TEST_F(LaunchManifestTest, ListsItsFiles) {
  const auto manifest = ParseLaunchManifest(R"({"format":"lockstep-launch","rank":0,"files":["a.nsys-rep",3,"b"]})");
  ASSERT_TRUE(manifest);
  EXPECT_THAT(manifest->files, ElementsAre("a.nsys-rep", "b"));
}

}  // namespace
}  // namespace lockstep::ingest::nsight
