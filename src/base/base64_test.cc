#include "base/base64.h"

#include <gtest/gtest.h>

#include <sstream>

namespace lockstep {
namespace {

TEST(Base64Test, WritesTheVectorsOfTheStandard) {
  EXPECT_EQ(EncodeBase64(""), "");
  EXPECT_EQ(EncodeBase64("f"), "Zg==");
  EXPECT_EQ(EncodeBase64("fo"), "Zm8=");
  EXPECT_EQ(EncodeBase64("foo"), "Zm9v");
  EXPECT_EQ(EncodeBase64("foobar"), "Zm9vYmFy");
}

TEST(Base64Test, ReadsBackEveryByteAtEveryLength) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes);
    bytes += static_cast<char>(i * 7);
  }
}

TEST(Base64Test, RefusesWhatItWouldNotHaveWritten) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "=m9v", "Zg==Zg==", "Zm 9", "Zm9v\n", "Zm9\xff"}) {
    EXPECT_EQ(DecodeBase64(text), std::nullopt) << text;
  }
}

TEST(Base64Test, PartsOfALongTextAreJoinedWithoutASeam) {
  const std::string bytes(3 * 4096 * 2 + 1, 'M');
  std::ostringstream out;
  WriteBase64(bytes, out);
  EXPECT_EQ(out.str(), EncodeBase64(bytes));
  EXPECT_EQ(out.str().find('='), out.str().size() - 2);
  EXPECT_EQ(out.str().substr(16380, 8), "TU1NTU1N");
}

}  // namespace
}  // namespace lockstep
