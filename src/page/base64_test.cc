#include "page/base64.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace lockstep::page {
namespace {

std::string Encode(std::string_view bytes) {
  std::ostringstream out;
  WriteBase64(bytes, out);
  return std::move(out).str();
}

TEST(Base64Test, TheTestVectorsOfTheStandardHold) {
  EXPECT_EQ(Encode(""), "");
  EXPECT_EQ(Encode("f"), "Zg==");
  EXPECT_EQ(Encode("fo"), "Zm8=");
  EXPECT_EQ(Encode("foo"), "Zm9v");
  EXPECT_EQ(Encode("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Encode("\xfb\xff\xfe"), "+//+");
}

TEST(Base64Test, PiecesOfALongTextAreJoinedWithoutASeam) {
  const std::string bytes(3 * 4096 * 2 + 1, 'M');
  const std::string text = Encode(bytes);
  EXPECT_EQ(text.size(), (bytes.size() + 2) / 3 * 4);
  EXPECT_EQ(text.find('='), text.size() - 2);
  EXPECT_EQ(text.substr(16380, 8), "TU1NTU1N");
}

}  // namespace
}  // namespace lockstep::page
