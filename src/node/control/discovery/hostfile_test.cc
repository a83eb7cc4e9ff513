#include "node/control/discovery/hostfile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "node/control/discovery/recorded_data.h"

namespace lockstep::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Hosts(std::string_view text) {
  const auto nodes = ParseHostfile(text);
  EXPECT_TRUE(nodes) << nodes.error().ToString();
  std::vector<std::string> hosts;
  if (nodes) {
    for (const JobNode& node : *nodes) hosts.push_back(node.host);
  }
  return hosts;
}

TEST(HostfileTest, TakesTheFormsOfMpi) {
  EXPECT_THAT(Hosts("# all of them\nn1 slots=4 max_slots=8\n\n  n2:4\nme@n3\tslots=2 # the last\r\nn[04-05]\n"),
              ElementsAre("n1", "n2", "n3", "n04", "n05"));
}

TEST(HostfileTest, AddressOfVersion6IsNoCountOfProcesses) { EXPECT_THAT(Hosts("fe80::12\n"), ElementsAre("fe80::12")); }

TEST(HostfileTest, NodefileOfPbsIsFolded) {
  EXPECT_THAT(Hosts("n001\nn001\nn002\nn001\n"), ElementsAre("n001", "n002"));
  const auto recording = recorded::File("pbs/nodefile-uneven.txt");
  if (!recording) GTEST_SKIP() << "recorded scheduler outputs are absent; set LOCKSTEP_DATA";
  EXPECT_THAT(Hosts(*recording), ElementsAre("n001", "n002", "n003"));
}

TEST(HostfileTest, PortAndAddressAreTheDaemons) {
  const auto nodes = ParseHostfile("n1 port=9999 address=10.0.0.1\nn2\n");
  ASSERT_TRUE(nodes);
  EXPECT_EQ((*nodes)[0].port, 9999);
  EXPECT_EQ((*nodes)[0].address, "10.0.0.1");
  EXPECT_EQ((*nodes)[1].port, 0);
}

TEST(HostfileTest, ErrorNamesTheLine) {
  for (const char* text : {"n1\nn2 n3\n", "n1\nn[2-1]\n", "n1\nn2 port=0\n", "n1\nn2 port=70000\n", "n1\n-x\n"}) {
    const auto nodes = ParseHostfile(text);
    ASSERT_FALSE(nodes) << text;
    EXPECT_EQ(nodes.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(nodes.error().message, HasSubstr("line 2"));
  }
}

TEST(HostfileTest, FileThatIsMissingEmptyOrAFolderIsAnError) {
  EXPECT_EQ(ReadHostfile("/nonexistent/hosts").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(ReadHostfile("/"));
  std::string pattern = std::filesystem::temp_directory_path() / "lockstep-hostfile-XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  const std::filesystem::path path = folder / "hosts";
  std::ofstream(path) << "# nobody\n";
  const auto empty = ReadHostfile(path);
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(empty.error().file, path);
  std::ofstream(path) << "n1\n";
  EXPECT_TRUE(ReadHostfile(path));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::control
