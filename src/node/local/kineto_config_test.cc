#include "node/local/kineto_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "node/local/torch_processes.h"

namespace lockstep::local {
namespace {

class KinetoConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/lkconf-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  BaseConfig Read(const std::string& text) const {
    std::ofstream(folder_ + "/conf") << text;
    return ReadBaseConfig(folder_ + "/conf");
  }

  std::string folder_;
};

TEST_F(KinetoConfigTest, TheIntervalIsReadAsKinetoReadsIt) {
  EXPECT_EQ(Read("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n").poll_seconds, 1);
  EXPECT_EQ(Read("# x\n  ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS\t= 12 # y\r\n").poll_seconds, 12);
  EXPECT_EQ(Read("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\nON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=3").poll_seconds, 3);
  for (const char* text :
       {"", "# ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n", "ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=x\n",
        "ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=0", "=\n==\n", "ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS"}) {
    EXPECT_EQ(Read(text).poll_seconds, std::nullopt) << text;
  }
}

TEST_F(KinetoConfigTest, OneLineOfCommentIsNotEmpty) {
  EXPECT_TRUE(Read("").readable);
  EXPECT_TRUE(Read("").empty);
  EXPECT_FALSE(Read("#\n").empty);
  EXPECT_FALSE(ReadBaseConfig(folder_ + "/none").readable);
  EXPECT_FALSE(ReadBaseConfig(folder_).readable);
}

TEST_F(KinetoConfigTest, AFifoIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  EXPECT_FALSE(ReadBaseConfig(folder_ + "/fifo").readable);
}

TEST_F(KinetoConfigTest, OnlyThePlainNameOfAFolderWillDo) {
  EXPECT_EQ(SocketFolderFault(folder_), "");
  EXPECT_EQ(SocketFolderFault("/" + std::string(kMaxSocketFolderBytes - 1, 'x')), "");
  EXPECT_NE(SocketFolderFault("/" + std::string(kMaxSocketFolderBytes, 'x')), "");
  for (const std::string& path : {std::string(), std::string("x"), folder_ + "/", folder_ + "/.", "/" + folder_,
                                  folder_ + "/../x", std::string("/proc/self/cwd")}) {
    EXPECT_NE(SocketFolderFault(path), "") << path;
  }
}

TEST(TorchVersionTest, TheNumbersAreRead) {
  EXPECT_TRUE(ParseTorchVersion("2.13.0+cpu").IsBetween(13, 13));
  EXPECT_TRUE(ParseTorchVersion("2.6").IsBetween(3, 9));
  EXPECT_EQ(ParseTorchVersion("1.13.1").major, 1);
  for (const char* text : {"", "2", "2.", "x.1", ".5"}) EXPECT_EQ(ParseTorchVersion(text).major, 0) << text;
}

}  // namespace
}  // namespace lockstep::local
