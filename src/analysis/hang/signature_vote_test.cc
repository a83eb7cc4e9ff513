#include "analysis/hang/signature_vote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/hang/job_for_test.h"

namespace lockstep::hang {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const CallForTest kForward = {.operation = "nccl:all_gather", .outputs = {{256}}, .function = "forward", .line = 10};
const CallForTest kBackward = {.operation = "nccl:all_reduce", .function = "backward", .line = 20};
const CallForTest kLoss = {
    .operation = "nccl:broadcast", .inputs = {{1}}, .outputs = {{1}}, .function = "loss", .line = 30};

CallForTest Open(CallForTest call) {
  call.done = false;
  return call;
}

/// Four ranks that have done three rounds of forward, backward, loss: #1 to #9.
class SignatureVoteTest : public ::testing::Test {
 protected:
  SignatureVoteTest() : world_(job_.World()) {
    for (int round = 0; round < 3; ++round) {
      for (const CallForTest& call : {kForward, kBackward, kLoss}) job_.CallAll(world_, call);
    }
  }
  /// The only mismatch that is found.
  Mismatch Vote() {
    view_ = job_.View();
    const std::vector<Mismatch> mismatches = VoteOnSignatures(view_);
    EXPECT_THAT(mismatches, SizeIs(1));
    return mismatches.empty() ? Mismatch{} : mismatches.front();
  }
  JobForTest job_{4};
  uint32_t world_;
  JobView view_;
};

TEST_F(SignatureVoteTest, RanksThatAgreeGiveNoMismatch) {
  job_.CallAll(world_, Open(kForward));
  const JobView view = job_.View();
  EXPECT_THAT(VoteOnSignatures(view), IsEmpty());
}

TEST_F(SignatureVoteTest, OneAgainstThreeIsTheDeviant) {
  CallForTest other = Open(kForward);
  other.inputs = {{63}};
  job_.Call(2, world_, other);
  job_.CallAllBut({2}, world_, Open(kForward));
  const Mismatch mismatch = Vote();
  EXPECT_THAT(mismatch.deviants, ElementsAre(2));
  EXPECT_THAT(mismatch.others, ElementsAre(0, 1, 3));
  EXPECT_EQ(mismatch.sequence, 10);
  EXPECT_EQ(mismatch.margin, 2);
  EXPECT_FALSE(mismatch.by_history);
  EXPECT_EQ(mismatch.kind, VerdictKind::kSizeMismatch);
}

TEST_F(SignatureVoteTest, AnotherDtypeIsToldAsSuch) {
  CallForTest other = Open(kForward);
  other.dtype = "Half";
  job_.Call(2, world_, other);
  job_.CallAllBut({2}, world_, Open(kForward));
  EXPECT_EQ(Vote().kind, VerdictKind::kDtypeMismatch);
}

TEST_F(SignatureVoteTest, AnotherOperationFromTheSameLineIsNoShift) {
  CallForTest other = Open(kForward);
  other.operation = "nccl:all_reduce";
  job_.Call(2, world_, other);
  job_.CallAllBut({2}, world_, Open(kForward));
  EXPECT_EQ(Vote().kind, VerdictKind::kOperationMismatch);
}

TEST_F(SignatureVoteTest, WhoCallsWhatComesNextHasSkipped) {
  job_.Call(2, world_, Open(kBackward));
  job_.CallAllBut({2}, world_, Open(kForward));
  const Mismatch mismatch = Vote();
  EXPECT_EQ(mismatch.kind, VerdictKind::kSkippedCollective) << "earlier rounds tell that backward comes next";
  EXPECT_TRUE(mismatch.deviant_goes_on_as_others_later);
}

TEST_F(SignatureVoteTest, WhoThenCallsWhatTheOthersCalledHasOneMore) {
  job_.Call(2, world_, {.operation = "nccl:all_reduce", .inputs = {{5}}, .function = "debug", .line = 99});
  job_.Call(2, world_, Open(kForward));
  job_.CallAllBut({2}, world_, Open(kForward));
  EXPECT_EQ(Vote().kind, VerdictKind::kExtraCollective);
}

TEST_F(SignatureVoteTest, WhoCallsTwoTheOtherWayRoundHasThemInWrongOrder) {
  job_.Call(2, world_, Open(kBackward));
  job_.Call(2, world_, Open(kForward));
  job_.CallAllBut({2}, world_, Open(kForward));
  job_.CallAllBut({2}, world_, Open(kBackward));
  EXPECT_EQ(Vote().kind, VerdictKind::kWrongOrder);
}

TEST_F(SignatureVoteTest, WhatWentWellAfterwardsDidNoHarm) {
  CallForTest other = kForward;
  other.inputs = {{63}};
  job_.Call(2, world_, other);
  job_.CallAllBut({2}, world_, kForward);
  job_.CallAll(world_, kBackward);
  const JobView view = job_.View();
  EXPECT_THAT(VoteOnSignatures(view), IsEmpty());
}

TEST_F(SignatureVoteTest, AnOpenCallAfterwardsProvesNothing) {
  CallForTest other = kForward;
  other.inputs = {{63}};
  job_.Call(2, world_, other);
  job_.CallAllBut({2}, world_, kForward);
  job_.CallAll(world_, Open(kBackward));
  EXPECT_THAT(Vote().deviants, ElementsAre(2));
}

TEST_F(SignatureVoteTest, EarlierRoundsBreakATie) {
  job_.Call(0, world_, Open(kForward));
  job_.Call(1, world_, Open(kForward));
  job_.Call(2, world_, Open(kLoss));
  job_.Call(3, world_, Open(kLoss));
  const Mismatch mismatch = Vote();
  EXPECT_TRUE(mismatch.by_history);
  EXPECT_THAT(mismatch.deviants, ElementsAre(2, 3));
}

TEST(SignatureVoteOfStrangersTest, ATieWithoutAPastNamesNobody) {
  JobForTest job(2);
  const uint32_t world = job.World();
  job.Call(0, world, Open(kForward));
  job.Call(1, world, Open(kBackward));
  JobView view = job.View();
  view.groups[0].members_inferred = true;  // Else all_gather's sizes would tell.
  const std::vector<Mismatch> mismatches = VoteOnSignatures(view);
  ASSERT_THAT(mismatches, SizeIs(1));
  EXPECT_THAT(mismatches[0].deviants, IsEmpty());
  EXPECT_EQ(mismatches[0].margin, 0);
  EXPECT_THAT(mismatches[0].parties, ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(SignatureVoteOfStrangersTest, ASizeThatBreaksItsRuleBreaksATie) {
  JobForTest job(2);
  const uint32_t world = job.World();
  job.Call(0, world, {.operation = "nccl:_all_gather_base", .inputs = {{8}}, .outputs = {{20}}, .done = false});
  job.Call(1, world, {.operation = "nccl:_all_gather_base", .inputs = {{9}}, .outputs = {{18}}, .done = false});
  const JobView view = job.View();
  const std::vector<Mismatch> mismatches = VoteOnSignatures(view);
  ASSERT_THAT(mismatches, SizeIs(1));
  EXPECT_THAT(mismatches[0].deviants, ElementsAre(0));
}

/// Two pairs with one description: what one pair does, the other does, too.
class SiblingVoteTest : public ::testing::Test {
 protected:
  SiblingVoteTest()
      : job_(4), left_(job_.Group("1", "tensor_parallel", {0, 1})), right_(job_.Group("2", "tensor_parallel", {2, 3})) {
    for (const uint32_t group : {left_, right_}) {
      for (int round = 0; round < 3; ++round) job_.CallAll(group, kForward);
    }
  }
  JobForTest job_;
  uint32_t left_, right_;
};

TEST_F(SiblingVoteTest, SiblingsOutvoteOneOfTwo) {
  job_.Call(0, left_, Open(kBackward));
  job_.Call(1, left_, Open(kLoss));
  job_.CallAll(right_, Open(kBackward));
  const JobView view = job_.View();
  const std::vector<Mismatch> mismatches = VoteOnSignatures(view);
  ASSERT_THAT(mismatches, SizeIs(1));
  EXPECT_THAT(mismatches[0].deviants, ElementsAre(1));
  EXPECT_THAT(mismatches[0].siblings, ElementsAre(2, 3));
}

TEST_F(SiblingVoteTest, ASiblingThatDidOtherThingsBeforeHasNoVote) {
  job_.CallAll(left_, kBackward);
  job_.CallAll(right_, kLoss);  // Stages of a pipeline may have one description.
  job_.Call(0, left_, Open(kBackward));
  job_.Call(1, left_, Open(kLoss));
  job_.CallAll(right_, Open(kLoss));
  const JobView view = job_.View();
  const std::vector<Mismatch> mismatches = VoteOnSignatures(view);
  ASSERT_THAT(mismatches, SizeIs(1));
  EXPECT_THAT(mismatches[0].siblings, IsEmpty());
}

TEST_F(SiblingVoteTest, SiblingsContradictAMemberWhosePartnerHasNoRecord) {
  job_.Call(0, left_, Open(kLoss));
  job_.CallAll(right_, Open(kBackward));
  job_.LoseRecord(1);
  const JobView view = job_.View();
  const std::vector<Mismatch> mismatches = VoteOnSignatures(view);
  ASSERT_THAT(mismatches, SizeIs(1));
  EXPECT_THAT(mismatches[0].deviants, ElementsAre(0));
}

TEST_F(SiblingVoteTest, SiblingsThatAreWholeMayDiffer) {
  job_.CallAll(left_, Open(kLoss));
  job_.CallAll(right_, Open(kBackward));
  const JobView view = job_.View();
  EXPECT_THAT(VoteOnSignatures(view), IsEmpty());
}

TEST(WrappedVoteTest, RingsThatOverlapOnlyInPartAreComparedWhereTheyDo) {
  JobForTest job(2);
  const uint32_t world = job.World();
  job.WrapRings(1000);
  for (int64_t sequence = 1001; sequence <= 1010; ++sequence) job.Call(0, world, {.sequence = sequence});
  for (int64_t sequence = 1005; sequence <= 1012; ++sequence) {
    job.Call(1, world, {.inputs = {{sequence == 1008 ? 65 : 64}}, .done = sequence < 1008, .sequence = sequence});
  }
  const JobView view = job.View();
  const std::vector<Mismatch> mismatches = VoteOnSignatures(view);
  ASSERT_THAT(mismatches, SizeIs(1));
  EXPECT_EQ(mismatches[0].sequence, 1008);
  EXPECT_THAT(mismatches[0].deviants, ElementsAre(1)) << "65 elements are called nowhere else";
}

}  // namespace
}  // namespace lockstep::hang
