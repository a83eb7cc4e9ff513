#include "ingest/bytes/prefetch_source.h"

#include <gtest/gtest.h>

#include <string>

#include "ingest/bytes/compress_for_test.h"

namespace lockstep::ingest {
namespace {

std::string Numbers(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += std::to_string(i) + " ";
  return text;
}

TEST(PrefetchSourceTest, GivesTheSameBytesThroughWindowsOfEverySize) {
  const std::string text = Numbers(300000);
  for (const size_t window_bytes : {size_t{1} << 12, size_t{100000}, size_t{1} << 18, size_t{1} << 22}) {
    auto source = Prefetch(std::move(*OpenMemory(test::Gzip(text), {})));
    std::string read, window(window_bytes, '\0');
    while (const size_t got = source->Read(window).value()) {
      read.append(window, 0, got);
      EXPECT_TRUE(got == window.size() || read.size() == text.size()) << "short only at the end";
    }
    EXPECT_TRUE(read == text);
    EXPECT_EQ(source->Read(window).value(), 0u) << "the end stays the end";
    EXPECT_EQ(source->consumed_bytes(), source->total_bytes());
  }
}

TEST(PrefetchSourceTest, AnErrorComesAfterTheBytesBeforeItAndStays) {
  const std::string text = Numbers(300000);
  const std::string packed = test::Gzip(text);
  auto source = Prefetch(std::move(*OpenMemory(packed.substr(0, packed.size() / 2), {})));
  std::string read, window(10000, '\0');
  while (true) {
    auto got = source->Read(window);
    if (!got) break;
    ASSERT_GT(*got, 0u);
    read.append(window, 0, *got);
  }
  EXPECT_GT(read.size(), text.size() / 3);
  EXPECT_TRUE(read == text.substr(0, read.size()));
  EXPECT_EQ(source->Read(window).error().code, ErrorCode::kCorruptData);
}

TEST(PrefetchSourceTest, MayBeDroppedAtAnyTime) {
  const std::string packed = test::Gzip(Numbers(500000));
  for (int reads = 0; reads < 40; ++reads) {
    auto source = Prefetch(std::move(*OpenMemory(packed, {})));
    std::string window(50000, '\0');
    for (int i = 0; i < reads; ++i) ASSERT_TRUE(source->Read(window));
  }
}

}  // namespace
}  // namespace lockstep::ingest
