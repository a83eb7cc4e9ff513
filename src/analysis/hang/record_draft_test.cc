#include "analysis/hang/record_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/hang/job_for_test.h"

namespace lockstep::hang {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// The signature of one call, of a record that holds nothing else.
Signature SignatureOf(const CallForTest& call) {
  JobForTest job(2);
  job.Call(0, job.World(), call);
  const RecordDraft draft = DraftRecord(job.Record(0));
  return draft.signatures.at(draft.groups[0].calls.at(0).signature).signature;
}

std::vector<int64_t> SequencesOf(const GroupDraft& group) {
  std::vector<int64_t> sequences;
  for (const Call& call : group.calls) sequences.push_back(call.sequence);
  return sequences;
}

TEST(RecordDraftTest, AllGatherIsComparedByItsInput) {
  EXPECT_EQ(SignatureOf({.operation = "nccl:_all_gather_base", .inputs = {{8, 4}}, .outputs = {{64}}}).elements, 32);
}

TEST(RecordDraftTest, ReduceScatterIsComparedByItsOutput) {
  EXPECT_EQ(SignatureOf({.operation = "nccl:_reduce_scatter_base", .inputs = {{64}}, .outputs = {{16}}}).elements, 16);
}

TEST(RecordDraftTest, AllToAllIsNotComparedBySize) {
  const Signature signature = SignatureOf({.operation = "nccl:all_to_all", .inputs = {{7}}, .outputs = {{9}}});
  EXPECT_EQ(signature.elements, -1);
  EXPECT_NE(signature.dtype, 0U);
}

TEST(RecordDraftTest, ScatterIsComparedByWhatEveryoneReceives) {
  const Signature root = SignatureOf({.operation = "nccl:scatter", .inputs = {{4}, {4}}, .outputs = {{4}}});
  const Signature other = SignatureOf({.operation = "nccl:scatter", .inputs = {}, .outputs = {{4}}});
  EXPECT_EQ(root.elements, other.elements);
  EXPECT_EQ(root.elements, 4);
}

TEST(RecordDraftTest, SizesOfSeveralTensorsAreAddedUp) {
  EXPECT_EQ(SignatureOf({.inputs = {{2, 3}, {4}}}).elements, 10);
}

TEST(RecordDraftTest, ATensorOfNoElementsCountsAsNone) { EXPECT_EQ(SignatureOf({.inputs = {{0, 3}}}).elements, 0); }

TEST(RecordDraftTest, ASizeBeyondAllMeasureDoesNotOverflow) {
  EXPECT_GT(SignatureOf({.inputs = {{INT64_MAX, INT64_MAX}, {INT64_MAX}}}).elements, 0);
}

TEST(RecordDraftTest, OperationsOfOneSequenceNumberAreOneLaunch) {
  JobForTest job(2);
  const uint32_t world = job.World();
  job.Call(0, world, {.operation = "nccl:_all_gather_base", .sequence = 1});
  job.Call(0, world, {.operation = "nccl:_all_gather_base", .inputs = {{8}}, .done = false, .sequence = 1});
  job.Call(0, world, {.operation = "nccl:coalesced", .inputs = {}, .outputs = {}, .dtype = "", .sequence = 1});
  job.Call(0, world, {.sequence = 2});
  const RecordDraft draft = DraftRecord(job.Record(0));
  ASSERT_THAT(SequencesOf(draft.groups[0]), ElementsAre(1, 2));
  const Call& launch = draft.groups[0].calls[0];
  EXPECT_FALSE(launch.done) << "one of its operations is open";
  EXPECT_EQ(draft.signatures[launch.signature].signature.kind, OperationKind::kCoalesced);
  EXPECT_THAT(draft.signatures[launch.signature].signature.parts, SizeIs(2));
}

TEST(RecordDraftTest, EqualLaunchesHaveEqualSignatures) {
  JobForTest job(2);
  const uint32_t world = job.World();
  for (const int64_t sequence : {1, 2}) {
    job.Call(0, world, {.operation = "nccl:all_reduce", .inputs = {{1}}, .sequence = sequence});
    job.Call(0, world, {.operation = "nccl:all_reduce", .inputs = {{2}}, .sequence = sequence});
  }
  const RecordDraft draft = DraftRecord(job.Record(0));
  EXPECT_EQ(draft.groups[0].calls[0].signature, draft.groups[0].calls[1].signature);
}

TEST(RecordDraftTest, TheClosingEntryOfALaunchOfOneOperationAddsNothing) {
  JobForTest job(2);
  const uint32_t world = job.World();
  job.Call(0, world, {.operation = "nccl:all_reduce", .sequence = 1});
  job.Call(0, world, {.operation = "nccl:coalesced", .inputs = {}, .outputs = {}, .done = false, .sequence = 1});
  const RecordDraft draft = DraftRecord(job.Record(0));
  ASSERT_THAT(draft.groups[0].calls, SizeIs(1));
  EXPECT_EQ(draft.signatures[draft.groups[0].calls[0].signature].signature.kind, OperationKind::kAllReduce);
  EXPECT_FALSE(draft.groups[0].calls[0].done);
}

TEST(RecordDraftTest, ARingThatBeginsAtZeroHasNotWrapped) {
  JobForTest job(2);
  job.Call(0, job.World());
  EXPECT_FALSE(DraftRecord(job.Record(0)).ring_wrapped);
}

TEST(RecordDraftTest, ARingThatBeginsLaterHasWrapped) {
  JobForTest job(2);
  job.WrapRings(5000);
  job.Call(0, job.World(), {.sequence = 5001});
  EXPECT_TRUE(DraftRecord(job.Record(0)).ring_wrapped);
}

TEST(RecordDraftTest, AnEmptyRecordMayHaveLostAnything) {
  JobForTest job(2);
  job.World();
  const RecordDraft draft = DraftRecord(job.Record(0));
  EXPECT_TRUE(draft.ring_wrapped);
  EXPECT_EQ(draft.newest_entry, kNone);
}

TEST(RecordDraftTest, ADumpWithoutACompletedOperationHoldsOpenOnesOnly) {
  JobForTest job(2);
  const uint32_t world = job.World();
  job.Call(0, world, {.done = false});
  EXPECT_TRUE(DraftRecord(job.Record(0)).active_only);
  job.Call(0, world);
  EXPECT_FALSE(DraftRecord(job.Record(0)).active_only);
}

TEST(RecordDraftTest, TheHooksEntriesGiveWayToTheBackendsOwn) {
  JobForTest job(2);
  const uint32_t world = job.World();
  job.Call(0, world, {.operation = "c10d:allreduce_", .sequence = 7});
  job.Call(0, world, {.operation = "gloo:all_reduce", .sequence = 1});
  job.Call(0, world, {.operation = "c10d:allreduce_", .sequence = 8});
  job.Call(0, world, {.operation = "gloo:all_reduce", .sequence = 2});
  EXPECT_THAT(SequencesOf(DraftRecord(job.Record(0)).groups[0]), ElementsAre(1, 2));
}

TEST(RecordDraftTest, TheHooksEntriesStandWhereThereAreNoOthers) {
  JobForTest job(2);
  job.Call(0, job.World(), {.operation = "c10d:allreduce_", .done = false});
  const RecordDraft draft = DraftRecord(job.Record(0));
  ASSERT_THAT(draft.groups[0].calls, SizeIs(1));
  EXPECT_TRUE(draft.groups[0].calls[0].done) << "a hook says nothing of completion";
}

TEST(RecordDraftTest, SendsAndReceivesAreNoCollectives) {
  JobForTest job(2);
  const uint32_t world = job.World();
  job.Call(0, world, {.operation = "nccl:send 0->1", .is_p2p = true});
  job.Call(0, world, {.operation = "nccl:recv 0<-1", .done = false, .is_p2p = true});
  const GroupDraft group = DraftRecord(job.Record(0)).groups[0];
  EXPECT_THAT(group.calls, IsEmpty());
  EXPECT_TRUE(group.on_device);
  EXPECT_THAT(group.p2p, ElementsAre(Field(&P2pCall::is_send, true), Field(&P2pCall::is_send, false)));
  EXPECT_THAT(group.p2p, ElementsAre(Field(&P2pCall::peer, 1), Field(&P2pCall::peer, 1)));
}

TEST(RecordDraftTest, CallsOutOfOrderAreSortedAndStandOnce) {
  JobForTest job(2);
  const uint32_t world = job.World();
  for (const int64_t sequence : {3, 1, 2, 3}) job.Call(0, world, {.sequence = sequence});
  EXPECT_THAT(SequencesOf(DraftRecord(job.Record(0)).groups[0]), ElementsAre(1, 2, 3));
}

TEST(RecordDraftTest, ASequenceNumberThatNoJobReachesIsNoCall) {
  JobForTest job(2);
  const uint32_t world = job.World();
  job.Call(0, world, {.sequence = 1});
  job.Call(0, world, {.sequence = INT64_MAX});
  EXPECT_THAT(SequencesOf(DraftRecord(job.Record(0)).groups[0]), ElementsAre(1));
}

TEST(UserFileTest, LibrariesAndNativeCodeAreNotTheUsers) {
  EXPECT_TRUE(IsUserFile("/home/user/train.py"));
  EXPECT_TRUE(IsUserFile("/usr/lib/python3/dist-packages/mylab/model.py"));
  EXPECT_FALSE(IsUserFile("/venv/lib/python3.11/site-packages/torch/optim/adam.py"));
  EXPECT_FALSE(IsUserFile("/usr/lib/python3.11/threading.py"));
  EXPECT_FALSE(IsUserFile("<frozen importlib._bootstrap>"));
  EXPECT_FALSE(IsUserFile("/mnt/package/lockstep/_hang.py"));
  EXPECT_FALSE(IsUserFile("libtorch_cpu.so"));
  EXPECT_FALSE(IsUserFile("../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"));
  EXPECT_FALSE(IsUserFile(""));
}

}  // namespace
}  // namespace lockstep::hang
