#include "ingest/bytes/byte_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "ingest/bytes/compress_for_test.h"
#include "ingest/bytes/unprivileged_for_test.h"

namespace lockstep::ingest {
namespace {

using ::testing::HasSubstr;

struct Drained {
  std::string bytes;
  std::optional<Error> error;
};

// Everything a source gives, through windows of `window_bytes`.
Drained Drain(ByteSource& source, size_t window_bytes) {
  Drained drained;
  std::string window(window_bytes, '\0');
  while (true) {
    auto got = source.Read(window);
    if (!got) {
      drained.error = std::move(got).error();
      return drained;
    }
    if (*got == 0) return drained;
    drained.bytes.append(window, 0, *got);
  }
}

Drained DrainMemory(std::string bytes, const ByteLimits& limits = {}, size_t window_bytes = 5000) {
  auto source = OpenMemory(std::move(bytes), limits);
  if (!source) return {.bytes = {}, .error = std::move(source).error()};
  return Drain(**source, window_bytes);
}

// Text that compresses about as well as a trace and does not repeat.
std::string TraceLikeText(size_t size) {
  std::mt19937 random(7);
  std::string text;
  while (text.size() < size) {
    text += R"({"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": )" + std::to_string(random()) +
            ", \"dur\": " + std::to_string(random() % 100) + "},\n";
  }
  text.resize(size);
  return text;
}

class ByteSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("lockstep_bytes_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, std::string_view bytes) {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }

  std::filesystem::path folder_;
};

TEST_F(ByteSourceTest, PlainFilesAreReadAsTheyAre) {
  const std::string text = TraceLikeText(300000);
  const std::string path = Write("a.json.gz", text);
  for (const size_t window : {size_t{1}, size_t{3}, size_t{4096}, size_t{1} << 20}) {
    auto source = OpenFile(path, {});
    ASSERT_TRUE(source);
    const Drained drained = Drain(**source, window);
    EXPECT_TRUE(drained.bytes == text) << window;
    EXPECT_FALSE(drained.error);
    EXPECT_EQ((*source)->consumed_bytes(), text.size());
    EXPECT_EQ((*source)->total_bytes(), text.size());
  }
}

TEST_F(ByteSourceTest, ReadFillsTheWholeWindowUntilTheEnd) {
  const std::string text = TraceLikeText(1000000);
  for (const std::string& bytes : {text, test::Gzip(text), test::Zstd(text)}) {
    auto source = OpenMemory(bytes, {});
    ASSERT_TRUE(source);
    std::string window(262144, '\0');
    EXPECT_EQ((*source)->Read(window).value(), window.size());
    EXPECT_EQ((*source)->Read(window).value(), window.size());
    EXPECT_EQ((*source)->Read(window).value(), window.size());
    EXPECT_EQ((*source)->Read(window).value(), text.size() - 3 * window.size());
    EXPECT_EQ((*source)->Read(window).value(), 0u);
    EXPECT_EQ((*source)->consumed_bytes(), bytes.size());
  }
}

TEST_F(ByteSourceTest, EmptyInputIsEmptyAndNoError) {
  EXPECT_EQ(DrainMemory("").bytes, "");
  EXPECT_FALSE(DrainMemory("").error);
  auto source = OpenFile(Write("empty.json", ""), {});
  ASSERT_TRUE(source);
  EXPECT_EQ(Drain(**source, 10).bytes, "");
}

TEST_F(ByteSourceTest, CompressionIsDecidedByMagicAndNotByName) {
  const std::string path = Write("plain_name.json", test::Gzip("{}"));
  auto source = OpenFile(path, {});
  ASSERT_TRUE(source);
  EXPECT_EQ(Drain(**source, 10).bytes, "{}");
}

TEST_F(ByteSourceTest, GzipOfEveryLevelComesBackThroughWindowsOfEverySize) {
  const std::string text = TraceLikeText(400000);
  for (const int level : {0, 1, 6, 9}) {
    for (const size_t window : {size_t{1}, size_t{777}, size_t{65536}, size_t{1} << 20}) {
      if (window == 1 && level != 6) continue;
      const Drained drained = DrainMemory(test::Gzip(text, level), {}, window);
      EXPECT_TRUE(drained.bytes == text) << level << " " << window;
      EXPECT_FALSE(drained.error);
    }
  }
}

TEST_F(ByteSourceTest, GzipMembersAreReadOneAfterAnother) {
  const std::string a = TraceLikeText(200000), b = "tail", c = TraceLikeText(131072);
  const Drained drained = DrainMemory(test::Gzip(a) + test::Gzip("") + test::Gzip(b) + test::Gzip(c, 0));
  EXPECT_TRUE(drained.bytes == a + b + c);
  EXPECT_FALSE(drained.error);
}

TEST_F(ByteSourceTest, ManyTinyGzipMembersAreRead) {
  std::string bytes, text;
  for (int i = 0; i < 5000; ++i) {
    bytes += test::Gzip(std::to_string(i));
    text += std::to_string(i);
  }
  EXPECT_TRUE(DrainMemory(bytes).bytes == text);
}

TEST_F(ByteSourceTest, GzipCutAtAnyByteGivesAPrefixAndThenAnError) {
  const std::string text = TraceLikeText(3000);
  const std::string whole = test::Gzip(text);
  for (size_t cut = 2; cut < whole.size(); ++cut) {
    const Drained drained = DrainMemory(whole.substr(0, cut));
    ASSERT_TRUE(drained.error) << cut;
    EXPECT_EQ(drained.error->code, ErrorCode::kCorruptData) << cut;
    EXPECT_TRUE(drained.bytes == text.substr(0, drained.bytes.size())) << cut;
    EXPECT_EQ(drained.error->byte_offset, drained.bytes.size()) << cut;
  }
}

TEST_F(ByteSourceTest, CutGzipHandsOutNearlyAllThatWasThere) {
  const std::string text = TraceLikeText(1000000);
  const std::string whole = test::Gzip(text);
  const Drained drained = DrainMemory(whole.substr(0, whole.size() / 2));
  ASSERT_TRUE(drained.error);
  EXPECT_THAT(drained.error->message, HasSubstr("cut"));
  EXPECT_GT(drained.bytes.size(), text.size() / 2 - 20000);
  EXPECT_TRUE(drained.bytes == text.substr(0, drained.bytes.size()));
}

TEST_F(ByteSourceTest, AWrongChecksumIsReportedAfterTheData) {
  const std::string text = TraceLikeText(100000);
  std::string bytes = test::Gzip(text);
  bytes[bytes.size() - 6] ^= 0x10;
  const Drained drained = DrainMemory(bytes);
  EXPECT_TRUE(drained.bytes == text);
  ASSERT_TRUE(drained.error);
  EXPECT_THAT(drained.error->message, HasSubstr("checksum"));
}

TEST_F(ByteSourceTest, FlippedBitsNeverCrashAndNeverPassForWhole) {
  const std::string text = TraceLikeText(20000);
  for (const std::string& whole : {test::Gzip(text), test::Zstd(text)}) {
    std::mt19937 random(11);
    for (int round = 0; round < 400; ++round) {
      std::string bytes = whole;
      bytes[10 + random() % (bytes.size() - 10)] ^= static_cast<char>(1 << random() % 8);
      const Drained drained = DrainMemory(bytes);
      if (!drained.error) {
        EXPECT_TRUE(drained.bytes == text);
      }
    }
  }
}

TEST_F(ByteSourceTest, PaddingAfterTheEndIsNoData) {
  for (const std::string& bytes : {test::Gzip("{}"), test::Zstd("{}")}) {
    for (const size_t count : {1, 3, 512, 200000}) {
      const Drained drained = DrainMemory(bytes + std::string(count, '\0'));
      EXPECT_EQ(drained.bytes, "{}");
      EXPECT_FALSE(drained.error) << count;
    }
  }
}

TEST_F(ByteSourceTest, TextAfterTheEndIsReported) {
  for (const std::string& bytes : {test::Gzip("{}"), test::Zstd("{}")}) {
    const Drained drained = DrainMemory(bytes + R"({"traceEvents": []})");
    EXPECT_EQ(drained.bytes, "{}");
    ASSERT_TRUE(drained.error);
    EXPECT_EQ(drained.error->code, ErrorCode::kCorruptData);
  }
}

TEST_F(ByteSourceTest, ZstdFramesAreReadOneAfterAnother) {
  const std::string a = TraceLikeText(300000), b = TraceLikeText(1000);
  const std::string skippable("\x53\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
  const Drained drained = DrainMemory(skippable + test::Zstd(a) + skippable + test::Zstd("") + test::Zstd(b));
  EXPECT_TRUE(drained.bytes == a + b);
  EXPECT_FALSE(drained.error);
}

TEST_F(ByteSourceTest, ZstdCutAtAnyByteGivesAPrefixAndThenAnError) {
  const std::string text = TraceLikeText(3000);
  const std::string whole = test::Zstd(text);
  for (size_t cut = 4; cut < whole.size(); ++cut) {
    const Drained drained = DrainMemory(whole.substr(0, cut));
    ASSERT_TRUE(drained.error) << cut;
    EXPECT_EQ(drained.error->code, ErrorCode::kCorruptData);
    EXPECT_TRUE(drained.bytes == text.substr(0, drained.bytes.size()));
  }
}

TEST_F(ByteSourceTest, ABombStopsAtTheRatio) {
  const std::string zeros(size_t{100} << 20, '0');
  for (const std::string& bomb : {test::Gzip(zeros), test::Zstd(zeros)}) {
    const ByteLimits limits = {.max_ratio = 500};
    const Drained drained = DrainMemory(bomb, limits, 1 << 20);
    ASSERT_TRUE(drained.error);
    EXPECT_EQ(drained.error->code, ErrorCode::kLimitExceeded);
    EXPECT_GE(drained.bytes.size(), size_t{64} << 20) << "small outputs are free";
  }
}

TEST_F(ByteSourceTest, ABombStopsAtTheOutputLimit) {
  const std::string text(1 << 20, 'x');
  const ByteLimits limits = {.max_output_bytes = 100000};
  const Drained drained = DrainMemory(test::Gzip(text), limits, 1 << 19);
  ASSERT_TRUE(drained.error);
  EXPECT_EQ(drained.error->code, ErrorCode::kLimitExceeded);
  EXPECT_LE(drained.bytes.size(), 100001u);
  EXPECT_FALSE(DrainMemory(test::Gzip(std::string(100000, 'x')), limits).error) << "the limit itself is allowed";
}

TEST_F(ByteSourceTest, OtherCompressionsAreRefusedByName) {
  using namespace std::string_literals;
  EXPECT_THAT(DrainMemory("BZh91AY"s).error->message, HasSubstr("bzip2 -d"));
  EXPECT_EQ(DrainMemory("\x04\x22\x4d\x18...."s).error->code, ErrorCode::kUnsupported);
}

TEST_F(ByteSourceTest, XzIsReadToItsEnd) {
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(i * 7919 % 1000003) + ",";
  const std::string packed = test::Xz(text);
  const Drained drained = DrainMemory(packed);
  EXPECT_FALSE(drained.error);
  EXPECT_EQ(drained.bytes, text);
  EXPECT_EQ(DrainMemory(packed + test::Xz("more")).bytes, text + "more") << "streams may follow one another";
}

TEST_F(ByteSourceTest, DamagedXzGivesWhatCameBeforeAndThenTheError) {
  using namespace std::string_literals;
  const std::string text(200000, 'x');
  std::string packed = test::Xz(text);
  const Drained cut = DrainMemory(packed.substr(0, packed.size() - 20));
  ASSERT_TRUE(cut.error);
  EXPECT_EQ(cut.error->code, ErrorCode::kCorruptData);
  EXPECT_EQ(text.substr(0, cut.bytes.size()), cut.bytes);
  packed[packed.size() / 2] ^= 0x55;
  EXPECT_TRUE(DrainMemory(packed).error);
  EXPECT_EQ(DrainMemory("\xfd\x37\x7a\x58\x5a\x00..."s).error->code, ErrorCode::kCorruptData);
  EXPECT_EQ(DrainMemory(test::Xz(std::string(size_t{80} << 20, 'x'))).error->code, ErrorCode::kLimitExceeded);
}

TEST_F(ByteSourceTest, AMissingFileIsNotFound) {
  auto source = OpenFile((folder_ / "absent.json").string(), {});
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::kNotFound);
}

TEST_F(ByteSourceTest, FoldersFifosAndDevicesAreRefusedWithoutWaiting) {
  const std::string fifo = (folder_ / "fifo.json").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, folder_.string(), std::string("/dev/zero"), std::string("/dev/null")}) {
    auto source = OpenFile(path, {});
    ASSERT_FALSE(source) << path;
    EXPECT_EQ(source.error().code, ErrorCode::kInvalidArgument) << path;
  }
}

TEST_F(ByteSourceTest, AnUnreadableFileIsPermissionDenied) {
  const std::string path = Write("secret.json", "{}");
  ::chmod(path.c_str(), 0);
  const Unprivileged user;
  ASSERT_TRUE(user.ok());
  auto source = OpenFile(path, {});
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace lockstep::ingest
