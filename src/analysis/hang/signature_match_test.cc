#include "analysis/hang/signature_match.h"

#include <gtest/gtest.h>

namespace lockstep::hang {
namespace {

class SignatureMatchTest : public ::testing::Test {
 protected:
  SignatureMatchTest() { view_.signatures.emplace_back(); }
  uint32_t Add(Signature signature) {
    view_.signatures.push_back(std::move(signature));
    return static_cast<uint32_t>(view_.signatures.size() - 1);
  }
  uint32_t Reduce(int64_t elements, uint32_t dtype) { return Add({OperationKind::kAllReduce, 0, elements, dtype, {}}); }
  bool Matches(uint32_t a, uint32_t b) {
    EXPECT_EQ(Match(view_, a, b), Match(view_, b, a)) << "it is the same either way round";
    return Match(view_, a, b);
  }
  JobView view_;
};

TEST_F(SignatureMatchTest, KindSizeAndDtypeHaveToBeEqual) {
  EXPECT_TRUE(Matches(Reduce(8, 1), Reduce(8, 1)));
  EXPECT_FALSE(Matches(Reduce(8, 1), Reduce(9, 1)));
  EXPECT_FALSE(Matches(Reduce(8, 1), Reduce(8, 2)));
  EXPECT_FALSE(Matches(Reduce(8, 1), Add({OperationKind::kReduce, 0, 8, 1, {}})));
}

TEST_F(SignatureMatchTest, WhatIsNotRecordedMatchesAll) {
  EXPECT_TRUE(Matches(Reduce(-1, 1), Reduce(9, 1)));
  EXPECT_TRUE(Matches(Reduce(8, 0), Reduce(8, 2)));
  EXPECT_FALSE(Matches(Reduce(-1, 1), Reduce(9, 2))) << "what is recorded still differs";
}

TEST_F(SignatureMatchTest, UnknownOperationsAreToldApartByName) {
  const uint32_t mine = Add({OperationKind::kOther, 1, -1, 0, {}});
  EXPECT_FALSE(Matches(mine, Add({OperationKind::kOther, 2, -1, 0, {}})));
  EXPECT_TRUE(Matches(mine, Add({OperationKind::kOther, 1, -1, 0, {}})));
}

TEST_F(SignatureMatchTest, LaunchesMatchOperationByOperation) {
  const uint32_t one = Reduce(1, 1);
  const uint32_t two = Reduce(2, 1);
  const uint32_t launch = Add({OperationKind::kCoalesced, 0, -1, 0, {one, two}});
  EXPECT_TRUE(Matches(launch, Add({OperationKind::kCoalesced, 0, -1, 0, {one, Reduce(-1, 1)}})));
  EXPECT_FALSE(Matches(launch, Add({OperationKind::kCoalesced, 0, -1, 0, {two, one}})));
  EXPECT_FALSE(Matches(launch, Add({OperationKind::kCoalesced, 0, -1, 0, {one, two, two}})));
  EXPECT_FALSE(Matches(launch, one));
}

TEST_F(SignatureMatchTest, ALaunchWhoseOperationsAreNotRecordedMatchesAll) {
  const uint32_t blank = Add({OperationKind::kCoalesced, 0, -1, 0, {}});
  EXPECT_TRUE(Matches(blank, Reduce(1, 1)));
  EXPECT_TRUE(Matches(blank, Add({OperationKind::kCoalesced, 0, -1, 0, {Reduce(1, 1), Reduce(2, 1)}})));
}

}  // namespace
}  // namespace lockstep::hang
