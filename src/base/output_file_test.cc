#include "base/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace lockstep {
namespace {

class OutputFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "output_file.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string Read(const std::string& path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static void Hello(std::ostream& out) { out << "hello"; }

  std::string folder_;
};

TEST_F(OutputFileTest, AFileIsReplacedAndNothingElseIsLeft) {
  std::ofstream(Path("page.html")) << "old and longer";
  ASSERT_TRUE(WriteOutputFile(Path("page.html"), Hello).has_value());
  EXPECT_EQ(Read(Path("page.html")), "hello");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(OutputFileTest, ALinkIsFollowed) {
  std::ofstream(Path("real.html")) << "old";
  std::filesystem::create_symlink(Path("real.html"), Path("link.html"));
  ASSERT_TRUE(WriteOutputFile(Path("link.html"), Hello).has_value());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link.html")));
  EXPECT_EQ(Read(Path("real.html")), "hello");
}

TEST_F(OutputFileTest, WhatIsNoRegularFileIsNotOverwritten) {
  ASSERT_EQ(::mkfifo(Path("pipe.html").c_str(), 0600), 0);
  EXPECT_EQ(WriteOutputFile(Path("pipe.html"), Hello).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(WriteOutputFile(folder_, Hello).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(WriteOutputFile("/dev/null", Hello).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(std::filesystem::is_fifo(Path("pipe.html")));
}

TEST_F(OutputFileTest, AMissingFolderIsNamed) {
  const Status status = WriteOutputFile(Path("none/page.html"), Hello);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(status.error().file, Path("none/page.html"));
}

TEST_F(OutputFileTest, AnExceptionHalfWayLeavesTheOldFile) {
  std::ofstream(Path("page.html")) << "old";
  const auto stop = [](std::ostream& out) {
    Hello(out);
    throw std::runtime_error("stopped half way");
  };
  EXPECT_THROW(static_cast<void>(WriteOutputFile(Path("page.html"), stop)), std::runtime_error);
  EXPECT_EQ(Read(Path("page.html")), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(OutputFileTest, AWriterThatGivesUpLeavesTheOldFile) {
  std::ofstream(Path("page.html")) << "old";
  const Status status = WriteOutputFile(Path("page.html"), [](std::ostream& out) {
    Hello(out);
    out.setstate(std::ios::failbit);
  });
  EXPECT_EQ(status.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(Read(Path("page.html")), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

}  // namespace
}  // namespace lockstep
