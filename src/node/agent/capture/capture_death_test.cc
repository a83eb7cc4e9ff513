#include "base/nanoseconds.h"
#include "node/agent/capture/capture_manager.h"
#include "node/agent/capture/capture_manager_fixture.h"

namespace lockstep::agent {
namespace {

using control::Capture;
using control::CaptureSpec;
using control::CaptureState;
using control::TargetState;
using testing::HasSubstr;

TEST_F(CaptureManagerTest, OneThatDiesLeavesAPartialCapture) {
  TestChild one, two;
  const control::Process first = Register(one, 0);
  const control::Process second = Register(two, 1);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(Trace(first));
  ASSERT_TRUE(WaitForOffer(second));
  two.End();
  registry_.Forget(second.id);
  ASSERT_TRUE(WaitForEnd(started->id));
  const Capture partial = Get(started->id);
  EXPECT_EQ(partial.state, CaptureState::kPartial);
  EXPECT_EQ(partial.targets[1].state, TargetState::kDied);
  EXPECT_THAT(partial.reason, HasSubstr("1 of 2 traced; rank 1: the process ended"));
  EXPECT_EQ(FileCount(options_.output_folder), 1u);
}

TEST_F(CaptureManagerTest, ARankThatIsKilledIsSaidAndTheOthersAreNotAskedAnyMore) {
  TestChild one, two, three;
  const control::Process waits = Register(one, 0);
  const control::Process dies = Register(two, 1);
  control::Process other = FakeRegistry::ProcessOf(three.pid());
  other.job_id = "78";
  registry_.Register(other);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(WaitForOffer(waits) && WaitForOffer(dies) && WaitForOffer(other));
  ASSERT_TRUE(registry_.Deliver(dies.id, Now().wall_ns));
  ASSERT_TRUE(WaitForTarget(started->id, TargetState::kDelivered, 1));
  two.End();
  registry_.End(dies.id, {.unix_ns = Now().wall_ns, .signal = SIGSEGV});
  ASSERT_TRUE(WaitForTarget(started->id, TargetState::kDied, 1));
  ASSERT_TRUE(WaitForTarget(started->id, TargetState::kCancelled, 0));
  EXPECT_FALSE(registry_.HasOffer(waits.id));
  ASSERT_TRUE(Trace(other));
  ASSERT_TRUE(WaitForEnd(started->id));
  const Capture partial = Get(started->id);
  EXPECT_EQ(partial.state, CaptureState::kPartial);
  EXPECT_EQ(partial.targets[0].reason, "withdrawn, because rank 1 of its job was ended by SIGSEGV");
  EXPECT_THAT(partial.targets[1].reason, HasSubstr("the process was ended by SIGSEGV at "));
  EXPECT_EQ(partial.targets[1].end->signal, SIGSEGV);
  EXPECT_EQ(partial.targets[2].state, TargetState::kDone);
  EXPECT_EQ(manager_->Counts().deaths_within, 1u);
  EXPECT_EQ(manager_->Counts().deaths_after, 0u);
}

TEST_F(CaptureManagerTest, ARankThatDiesSoonAfterItsTraceIsSaid) {
  TestChild one, two;
  const control::Process dies = Register(one, 0);
  const control::Process finishes = Register(two, 1);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(Trace(dies) && Trace(finishes));
  ASSERT_TRUE(WaitForEnd(started->id));
  const auto again = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(Trace(dies) && Trace(finishes));
  ASSERT_TRUE(WaitForEnd(again->id));
  registry_.End(dies.id, {.unix_ns = Now().wall_ns, .signal = SIGSEGV});
  registry_.End(finishes.id, {.unix_ns = Now().wall_ns, .exit_status = 0});
  ASSERT_TRUE(WaitFor([&] { return Get(started->id).targets[1].end.has_value(); }));
  EXPECT_EQ(Get(again->id).targets[0].end->signal, SIGSEGV);
  Capture after = Get(started->id);
  EXPECT_EQ(after.state, CaptureState::kDone);
  EXPECT_EQ(after.targets[0].end->signal, SIGSEGV);
  EXPECT_EQ(manager_->Counts().deaths_within, 0u);
  EXPECT_EQ(manager_->Counts().deaths_after, 1u) << "one process, though of two captures";
  manager_.reset();
  Begin();
  after = Get(started->id);
  EXPECT_EQ(after.targets[0].end->signal, SIGSEGV);
}

TEST_F(CaptureManagerTest, ADeathLongAfterItsTraceIsNotSaid) {
  TestChild child;
  const control::Process process = Register(child, 0);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitForEnd(started->id));
  const int64_t finished_ns = *Get(started->id).targets[0].finished_unix_ns;
  registry_.End(process.id, {.unix_ns = finished_ns + control::kWatchedAfterNs + 1, .signal = SIGSEGV});
  CaptureSpec spec;
  spec.wait_ns = kSecondNs;
  const auto next = manager_->Start(spec, me_);  // Its end says that the events before it were taken.
  ASSERT_TRUE(next) << next.error().ToString();
  ASSERT_TRUE(WaitForEnd(next->id));
  EXPECT_EQ(Get(started->id).targets[0].end, std::nullopt);
  EXPECT_EQ(manager_->Counts().deaths_after, 0u);
}

}  // namespace
}  // namespace lockstep::agent
