#include "analysis/comparison/name_match.h"

#include <gtest/gtest.h>

namespace lockstep::comparison {
namespace {

NameProfile Named(const char* name, EventClass kind = EventClass::kKernel) {
  NameProfile row;
  row.kind = kind;
  row.name = name;
  return row;
}

TEST(NameMatchTest, TemplatesParametersAndLambdasAreLeftOut) {
  EXPECT_EQ(NormaliseName("void at::native::elementwise_kernel<4, Add<float> >(int, Add<float>)"),
            NormaliseName("void at::native::elementwise_kernel<8, Add<half>>(int, Add<half>)"));
  EXPECT_EQ(NormaliseName("f::{lambda(int)#3}::operator()"), NormaliseName("f::{lambda(int)#12}::operator()"));
  EXPECT_EQ(NormaliseName("request#17 done"), "request# done");
}

TEST(NameMatchTest, DirectionsOfCopiesStayApart) {
  EXPECT_NE(NormaliseName("Memcpy HtoD (Pageable -> Device)"), NormaliseName("Memcpy HtoD (Pinned -> Device)"));
}

TEST(NameMatchTest, BracketsThatDoNotCloseGiveAName) {
  EXPECT_FALSE(NormaliseName("<<<<").empty());
  EXPECT_FALSE(NormaliseName(")>}").empty());
}

TEST(NameMatchTest, ExactGoesBeforeNormalised) {
  const std::vector<NameProfile> a = {Named("k<1>"), Named("k<2>")};
  const std::vector<NameProfile> b = {Named("k<2>"), Named("k<3>")};
  const auto pairs = MatchNames(a, b);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].match, NameMatch::kNormalised);
  EXPECT_EQ(*pairs[0].b, 1u);
  EXPECT_EQ(pairs[1].match, NameMatch::kExact);
}

TEST(NameMatchTest, AnAmbiguousNormalisedNameIsNotJoined) {
  const auto pairs = MatchNames({Named("k<1>"), Named("k<2>")}, {Named("k<3>")});
  ASSERT_EQ(pairs.size(), 3u);
  for (const NamePair& pair : pairs) EXPECT_EQ(pair.match, NameMatch::kNone);
}

TEST(NameMatchTest, ClassesDoNotMix) {
  EXPECT_EQ(MatchNames({Named("x", EventClass::kKernel)}, {Named("x", EventClass::kOperator)}).size(), 2u);
}

}  // namespace
}  // namespace lockstep::comparison
