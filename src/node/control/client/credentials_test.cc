#include "node/control/client/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep::control {
namespace {

using ::testing::HasSubstr;

class ReadTokenTest : public ::testing::Test {
 protected:
  ReadTokenTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-token-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ReadTokenTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& text, mode_t mode = 0600) {
    const std::string path = (folder_ / "token").string();
    std::ofstream(path, std::ios::binary) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  ErrorCode CodeOf(const std::string& path) {
    const Result<std::string> token = ReadToken(path);
    EXPECT_FALSE(token);
    return token ? ErrorCode::kIo : token.error().code;
  }

  std::filesystem::path folder_;
};

TEST_F(ReadTokenTest, TheOnlyLineIsTheToken) {
  const Result<std::string> token = ReadToken(Write("abc.DEF-123_~+/=\r\n"));
  ASSERT_TRUE(token) << token.error().message;
  EXPECT_EQ(*token, "abc.DEF-123_~+/=");
}

TEST_F(ReadTokenTest, AFileThatOthersMayReadIsRefused) {
  for (const mode_t mode : {0644, 0640, 0604, 0620}) {
    const Result<std::string> token = ReadToken(Write("abc\n", mode));
    ASSERT_FALSE(token);
    EXPECT_EQ(token.error().code, ErrorCode::kPermissionDenied);
    EXPECT_THAT(token.error().message, HasSubstr("chmod 600"));
  }
}

TEST_F(ReadTokenTest, WhatCouldEndAHeaderIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("a\nb"), std::string("a b"), std::string("a\0b", 3),
        std::string("a\x80"), std::string("a\r\nX: y\r\n"), std::string(5000, 'a')}) {
    EXPECT_EQ(CodeOf(Write(text)), ErrorCode::kCorruptData);
  }
}

TEST_F(ReadTokenTest, WhatIsNoFileIsRefusedAndDoesNotBlock) {
  EXPECT_EQ(CodeOf((folder_ / "none").string()), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOf(folder_.string()), ErrorCode::kPermissionDenied);
  const std::string fifo = (folder_ / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(CodeOf(fifo), ErrorCode::kPermissionDenied);
}

TEST(IsLoopbackTest, OnlyThisMachinesOwnAddressesAre) {
  for (const char* own : {"127.0.0.1", "127.1.2.3", "::1", "localhost"}) EXPECT_TRUE(IsLoopback(own)) << own;
  for (const char* other : {"128.0.0.1", "127.evil.example", "localhost.evil.example", "::2", "", "0.0.0.0", "n001"}) {
    EXPECT_FALSE(IsLoopback(other)) << other;
  }
}

}  // namespace
}  // namespace lockstep::control
