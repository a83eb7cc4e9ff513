#include "node/control/client/trace_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace lockstep::control {
namespace {

namespace fs = std::filesystem;

class TraceFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "lockstep-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    text_ = R"({"traceEvents": [)";
    for (int i = 0; i < 50'000; ++i) text_ += R"({"name":"op)" + std::to_string(i * 7919) + R"(","ts":1.000},)";
    text_ += R"({}], "traceName": "x"})";
  }
  void TearDown() override { fs::remove_all(folder_); }
  size_t FileCount() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
  std::string text_;
};

TEST_F(TraceFileTest, CompressesWhatComesInPieces) {
  auto file = TraceFile::Create(folder_ / "a.json", true);
  ASSERT_TRUE(file);
  for (size_t at = 0; at < text_.size(); at += 10'007) {
    ASSERT_TRUE((*file)->Write(std::string_view(text_).substr(at, 10'007)));
  }
  EXPECT_FALSE(fs::exists(folder_ / "a.json.gz"));
  const auto facts = (*file)->Keep(text_.size());
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ((*file)->file_bytes(), fs::file_size(folder_ / "a.json.gz"));
  EXPECT_LT((*file)->file_bytes(), text_.size() / 3);
  std::string back(text_.size() + 1, 0);
  gzFile in = gzopen((folder_ / "a.json.gz").c_str(), "rb");
  ASSERT_NE(in, nullptr);
  EXPECT_EQ(gzread(in, back.data(), static_cast<unsigned>(back.size())), static_cast<int>(text_.size()));
  gzclose(in);
  back.pop_back();
  EXPECT_EQ(back, text_);
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(TraceFileTest, PlainWhenAskedFor) {
  auto file = TraceFile::Create(folder_ / "a.json", false);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->Write(text_));
  ASSERT_TRUE((*file)->Keep(text_.size()));
  EXPECT_EQ(fs::file_size(folder_ / "a.json"), text_.size());
}

TEST_F(TraceFileTest, ACutTraceIsNotKept) {
  for (const size_t length : {text_.size() - 1, text_.size() / 2, size_t{0}}) {
    auto file = TraceFile::Create(folder_ / "a.json", true);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->Write(std::string_view(text_).substr(0, length)));
    const auto facts = (*file)->Keep(length == 0 ? 0 : text_.size());
    ASSERT_FALSE(facts);
    EXPECT_EQ(facts.error().code, ErrorCode::kCorruptData);
  }
  EXPECT_EQ(FileCount(), 0u);
}

TEST_F(TraceFileTest, AFolderThatIsNotThereIsNamed) {
  const auto file = TraceFile::Create(folder_ / "none" / "a.json", true);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace lockstep::control
