#include "base/letter_case.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(LetterCaseTest, LettersOfAsciiBecomeSmallAndOtherBytesStay) {
  EXPECT_EQ(Lowered("Rank_0 \xC3\x84 [AZ`{"), "rank_0 \xC3\x84 [az`{");
  EXPECT_EQ(Lowered(""), "");
}

TEST(LetterCaseTest, EqualMeansTheSameLettersAndTheSameLength) {
  EXPECT_TRUE(EqualIgnoringCase("Content-Length", "content-LENGTH"));
  EXPECT_FALSE(EqualIgnoringCase("Content-Length", "Content-Lengt"));
  EXPECT_FALSE(EqualIgnoringCase("[", "{"));  // As far apart as a capital and its letter.
}

TEST(LetterCaseTest, ContainsFindsAnyPlace) {
  EXPECT_TRUE(ContainsIgnoringCase("ncclDevKernel_AllReduce", "allreduce"));
  EXPECT_TRUE(ContainsIgnoringCase("anything", ""));
  EXPECT_FALSE(ContainsIgnoringCase("AllReduc", "allreduce"));
}

}  // namespace
}  // namespace lockstep
