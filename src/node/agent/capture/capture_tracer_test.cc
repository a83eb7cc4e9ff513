#include "node/agent/capture/capture_manager.h"
#include "node/agent/capture/capture_manager_fixture.h"

namespace lockstep::agent {
namespace {

using control::CaptureSpec;
using control::CaptureState;
using control::TargetState;
using testing::HasSubstr;

TEST_F(CaptureManagerTest, ATracerIsToldToBreakOffWhatIsCancelledOrHasLostARank) {
  TestChild one, two;
  control::Process first = FakeRegistry::ProcessOf(one.pid(), 0);
  first.id += "-steps";
  first.tracer = control::Tracer::kSteps;
  registry_.Register(first);
  const control::Process second = Register(two, 1);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(WaitForOffer(first) && WaitForOffer(second));
  const auto text = registry_.Deliver(first.id, Now().wall_ns);
  ASSERT_TRUE(text && registry_.Deliver(second.id, Now().wall_ns));
  EXPECT_THAT(*text, HasSubstr("REQUEST_TRACE_ID=" + started->id + "-0\n"));
  ASSERT_TRUE(WaitForTarget(started->id, TargetState::kDelivered, 0));
  ASSERT_TRUE(WaitForTarget(started->id, TargetState::kDelivered, 1));
  two.End();
  registry_.End(second.id, {.unix_ns = Now().wall_ns, .signal = SIGSEGV});
  ASSERT_TRUE(WaitFor([&] { return registry_.StoppedOf(first.id) == started->id + "-0"; }));
  registry_.SetNote(first.id, started->id + "-0 refused it was taken back");
  ASSERT_TRUE(WaitForEnd(started->id));
  EXPECT_EQ(Get(started->id).targets[0].state, TargetState::kRefused);
  EXPECT_EQ(Get(started->id).targets[0].reason, "it was taken back");

  const auto next = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(WaitForOffer(first));
  ASSERT_TRUE(registry_.Deliver(first.id, Now().wall_ns));
  ASSERT_TRUE(WaitForTarget(next->id, TargetState::kDelivered));
  ASSERT_TRUE(manager_->Cancel(next->id, me_));
  EXPECT_EQ(registry_.StoppedOf(first.id), next->id + "-0");
  EXPECT_EQ(Get(next->id).targets[0].reason, "will be stopped where its step ends");
}

TEST_F(CaptureManagerTest, WhatKinetoMayEndIsTracedOnlyWhereThatIsAllowed) {
  options_.allow_unsafe = false;
  TestChild one, two;
  const control::Process kineto = Register(one, 0);
  control::Process steps = FakeRegistry::ProcessOf(two.pid(), 1);
  steps.id += "-steps";
  steps.tracer = control::Tracer::kSteps;
  Begin();
  const auto refused = manager_->Start(CaptureSpec{}, me_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(refused.error().message, HasSubstr("Kineto in PyTorch 2.13.0+cpu can crash the process"));
  EXPECT_THAT(refused.error().message, HasSubstr("--allow-unsafe"));
  EXPECT_FALSE(registry_.HasOffer(kineto.id));
  registry_.Register(steps);
  const auto part = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(part && Trace(steps));
  ASSERT_TRUE(WaitForEnd(part->id));
  EXPECT_EQ(Get(part->id).targets[0].state, TargetState::kRefused);
  EXPECT_EQ(Get(part->id).targets[1].state, TargetState::kDone);
  CaptureSpec spec;
  spec.allow_unsafe = true;
  const auto allowed = manager_->Start(spec, me_);
  ASSERT_TRUE(allowed && Trace(kineto) && Trace(steps));
  ASSERT_TRUE(WaitForEnd(allowed->id));
  EXPECT_EQ(Get(allowed->id).state, CaptureState::kDone);
}

TEST_F(CaptureManagerTest, BothClientsOfAProcessAreOneProfiler) {
  TestChild child;
  const control::Process kineto = Register(child, 0);
  Begin();
  const auto running = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(WaitForOffer(kineto));
  control::Process steps = kineto;
  steps.id += "-steps";
  steps.tracer = control::Tracer::kSteps;
  registry_.Register(steps);
  CaptureSpec spec;
  spec.selector.process_ids = {steps.id};
  EXPECT_EQ(manager_->Start(spec, me_).error().code, ErrorCode::kFailedPrecondition);
}

}  // namespace
}  // namespace lockstep::agent
