#include "measure/nccl/nccl_library.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace lockstep::nccl_bench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(NcclLibraryTest, VersionsAreNumberedInTwoWays) {
  EXPECT_EQ(NcclVersionText(2408), "2.4.8");
  EXPECT_EQ(NcclVersionText(2708), "2.7.8");
  EXPECT_EQ(NcclVersionText(20906), "2.9.6");
  EXPECT_EQ(NcclVersionText(22105), "2.21.5");
}

class SearchTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("nccl_library_test." + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Put(const std::filesystem::path& path) {
    std::filesystem::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << "no library";
    return (folder_ / path).string();
  }
  std::filesystem::path folder_;
};

TEST_F(SearchTest, TheSystemFirstThenTheActivePythonAlone) {
  const std::string in_venv = Put("venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2");
  const std::string in_path = Put("first/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2");
  Put("first/bin/python3");
  Put("second/bin/python3");
  Put("second/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2");
  const std::string folder = folder_.string();
  EXPECT_THAT(
      NcclCandidates("", launch::Environment({{"VIRTUAL_ENV", folder + "/venv"},
                                              {"PATH", "/none:" + folder + "/first/bin:" + folder + "/second/bin"}})),
      ElementsAre("libnccl.so.2", in_venv, in_path));
  EXPECT_THAT(NcclCandidates("", launch::Environment()), ElementsAre("libnccl.so.2"));
}

TEST_F(SearchTest, WhatIsChosenIsNotLookedForElsewhere) {
  const std::map<std::string, std::string, std::less<>> usual = {{"PATH", "/usr/bin"}};
  EXPECT_THAT(NcclCandidates("/opt/nccl.so", launch::Environment(usual)), ElementsAre("/opt/nccl.so"));
  EXPECT_THAT(NcclCandidates("nccl.so", launch::Environment()), ElementsAre("./nccl.so"));
}

TEST_F(SearchTest, AnErrorNamesWhatWasTriedAndWhatToDo) {
  const std::string broken = Put("libnccl.so.2");
  const auto nccl = OpenNccl({"libno-such-library.so.2", broken});
  ASSERT_FALSE(nccl);
  EXPECT_EQ(nccl.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(nccl.error().message, AllOf(HasSubstr("libno-such-library.so.2 (in LD_LIBRARY_PATH"),
                                          HasSubstr(broken + ":"), HasSubstr("--nccl-library")));
}

TEST_F(SearchTest, ALibraryThatIsNotNcclIsNamedWithWhatItLacks) {
  const auto nccl = OpenNccl({"libc.so.6"});
  ASSERT_FALSE(nccl);
  EXPECT_EQ(nccl.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(nccl.error().message, HasSubstr("ncclGetVersion"));
  EXPECT_THAT(nccl.error().file, HasSubstr("libc.so.6"));
}

}  // namespace
}  // namespace lockstep::nccl_bench
