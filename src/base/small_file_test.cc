#include "base/small_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/unique_fd.h"

namespace lockstep {
namespace {

using ::testing::Eq;
using ::testing::Optional;
using ::testing::StartsWith;

TEST(SmallFileTest, FilesWithoutASizeAreReadAndTheLimitIsKept) {
  EXPECT_THAT(ReadSmallFile("/proc/self/status"), Optional(StartsWith("Name:")));
  EXPECT_THAT(ReadSmallFile("/proc/self/status", 4), Optional(Eq("Name")));
  EXPECT_THAT(ReadSmallFile("/dev/null"), Optional(Eq("")));
}

TEST(SmallFileTest, WhatIsNotThereAndAFolderSayWhy) {
  EXPECT_EQ(ReadSmallFile("/proc/self/none"), std::nullopt);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(ReadSmallFile("/proc/self"), std::nullopt);
  EXPECT_EQ(errno, EISDIR);
}

TEST(SmallFileTest, AProcessMayGoBetweenOpeningItsFileAndReadingIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const UniqueFd stat(::open(("/proc/" + std::to_string(child) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(stat.valid());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(ReadSome(stat.get(), 4096), std::nullopt);
  EXPECT_EQ(errno, ESRCH);
}

}  // namespace
}  // namespace lockstep
