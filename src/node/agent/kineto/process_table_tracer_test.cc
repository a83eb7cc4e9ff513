#include "base/nanoseconds.h"
#include "node/agent/kineto/process_table.h"
#include "node/agent/kineto/testing/process_table_fixture.h"

namespace lockstep::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// lockstep's own tracer in the process of pid 50, beside Kineto's client.
Sender TracerOf(int32_t pid) {
  return {.socket_idx = 0, .address = std::string("\0tracer", 7) + std::to_string(pid), .pid = pid, .uid = 7};
}
std::vector<std::byte> TracerPoll(int32_t mask, const std::string& note = "") {
  return WritePoll({.mask = mask, .pids = {50, 1000}, .is_tracer = true, .note = note});
}
constexpr int32_t kFreeWithSteps = PollRequest::kActivities | PollRequest::kSteps;

TEST_F(ProcessTableTest, AProcessIsItsTracerWhileStepsEndAndKinetosClientOtherwise) {
  const std::string kineto = Register(From(50));
  table_->SetDetails(Handle(TracerPoll(kFreeWithSteps), TracerOf(50)).new_client, {.start_ticks = 42}, false);
  ASSERT_THAT(table_->Processes(), SizeIs(1));
  EXPECT_EQ(table_->Processes()[0].id, kineto + "-steps");
  EXPECT_EQ(table_->Processes()[0].tracer, control::Tracer::kSteps);
  EXPECT_TRUE(table_->Find(kineto)) << "a capture may be under way in it";
  Handle(TracerPoll(PollRequest::kActivities), TracerOf(50));
  ASSERT_THAT(table_->Processes(), SizeIs(1));
  EXPECT_EQ(table_->Processes()[0].id, kineto);
  EXPECT_EQ(table_->Processes()[0].tracer, control::Tracer::kKineto);
  Register(From(51));
  EXPECT_THAT(table_->Processes(), SizeIs(2)) << "another process has no tracer";
}

TEST_F(ProcessTableTest, AProcessThatWasGivenATracerIsNotTakenForKinetosBeforeTheTracerHasHadItsTurn) {
  Register(From(50), {.has_step_tracer = true});
  Register(From(51));
  ASSERT_THAT(table_->Processes(), SizeIs(1));
  EXPECT_EQ(table_->Processes()[0].pid, 51);
  now_ns_ += 3 * kSecondNs;
  EXPECT_THAT(table_->Processes(), SizeIs(2)) << "it steps nothing, or not yet";
}

TEST_F(ProcessTableTest, ATracerThatHasFallenSilentLeavesTheProcessToKinetoUnlessItTraces) {
  const std::string kineto = Register(From(50));
  table_->SetDetails(Handle(TracerPoll(kFreeWithSteps), TracerOf(50)).new_client, {.start_ticks = 42}, false);
  const auto pass = [&](const int32_t mask) {
    Handle(TracerPoll(mask), TracerOf(50));
    for (int i = 0; i < 30; ++i) {
      now_ns_ += kSecondNs;
      Poll(From(50));
      table_->Sweep(now_ns_ - kStart);
    }
    return table_->Processes().at(0).tracer;
  };
  EXPECT_EQ(pass(kFreeWithSteps), control::Tracer::kKineto);
  EXPECT_EQ(pass(PollRequest::kSteps), control::Tracer::kSteps) << "a trace that is written holds Python up";
}

TEST_F(ProcessTableTest, ATracerIsAnsweredHoweverLateItsPollIsHandled) {
  table_->SetDetails(Handle(TracerPoll(kFreeWithSteps), TracerOf(50)).new_client, {.start_ticks = 42}, false);
  EXPECT_THAT(sent_, ElementsAre(""));
  ASSERT_TRUE(table_->Place("50-42-steps", {.token = "t", .text = "A=1\n"}));
  Handle(TracerPoll(PollRequest::kSteps), TracerOf(50));
  EXPECT_THAT(sent_, ElementsAre("", "")) << "it is busy";
  Handle(TracerPoll(kFreeWithSteps), TracerOf(50), 2 * kSecondNs);
  EXPECT_THAT(sent_, ElementsAre("", "", "A=1\n"));
  Handle(TracerPoll(kFreeWithSteps), TracerOf(50));
  EXPECT_THAT(sent_, ElementsAre("", "", "A=1\n", "")) << "nothing is owed";
}

TEST_F(ProcessTableTest, ATracerIsHandedNothingWhileKinetoTracesItsProcess) {
  Register(From(50));
  table_->SetDetails(Handle(TracerPoll(kFreeWithSteps), TracerOf(50)).new_client, {.start_ticks = 42}, false);
  ASSERT_TRUE(table_->Place("50-42-steps", {.token = "t", .text = "A=1\n"}));
  Poll(From(50), 1);
  sent_.clear();
  Handle(TracerPoll(kFreeWithSteps), TracerOf(50));
  EXPECT_THAT(sent_, ElementsAre(""));
  Poll(From(50), 3);
  sent_.clear();
  Handle(TracerPoll(kFreeWithSteps), TracerOf(50));
  EXPECT_THAT(sent_, ElementsAre("A=1\n"));
}

TEST_F(ProcessTableTest, HiddenProcessesOfTheSameNumbersAreNotTakenForOne) {
  const auto from = [](const char* address, bool is_tracer) {
    return std::pair(Sender{.socket_idx = 0, .address = std::string("\0", 1) + address, .pid = 0, .uid = 7},
                     WritePoll({.mask = 6, .pids = {1}, .is_tracer = is_tracer}));
  };
  const auto poll = [&](const char* address, bool is_tracer) {
    const auto [sender, bytes] = from(address, is_tracer);
    table_->SetDetails(Handle(bytes, sender).new_client, {}, false);
  };
  poll("a", false);
  poll("a-steps", true);
  ASSERT_THAT(table_->Processes(), SizeIs(1));
  EXPECT_EQ(table_->Processes()[0].tracer, control::Tracer::kSteps);
  poll("b", false);
  EXPECT_THAT(table_->Processes(), SizeIs(3));
}

TEST_F(ProcessTableTest, ATracerIsToldWhatToStopAndSaysWhatBecameOfIt) {
  const std::string kineto = Register(From(50));
  table_->SetDetails(Handle(TracerPoll(kFreeWithSteps), TracerOf(50)).new_client, {.start_ticks = 42}, false);
  sent_.clear();
  table_->Stop(kineto, "abc-0");
  Poll(From(50));
  EXPECT_THAT(sent_, ElementsAre("")) << "Kineto cannot be told";
  sent_.clear();
  table_->Stop("50-42-steps", "abc-0");
  table_->Stop("nobody", "abc-0");
  outcome_ = Outcome::kFailed;
  Handle(TracerPoll(PollRequest::kSteps), TracerOf(50));
  outcome_ = Outcome::kSent;
  Handle(TracerPoll(PollRequest::kSteps), TracerOf(50));
  Handle(TracerPoll(PollRequest::kSteps, "abc-0 refused it was taken back"), TracerOf(50));
  EXPECT_THAT(sent_, ElementsAre("abc-0", "", ""));
  EXPECT_EQ(table_->Note("50-42-steps"), "abc-0 refused it was taken back");
  EXPECT_EQ(table_->Note(kineto), "");
  EXPECT_EQ(table_->Note("nobody"), "");
}

TEST_F(ProcessTableTest, ATracerThatIsGoneWhileItIsToldIsLetGo) {
  table_->SetDetails(Handle(TracerPoll(kFreeWithSteps), TracerOf(50)).new_client, {.start_ticks = 42}, false);
  ASSERT_TRUE(table_->Place("50-42-steps", {.token = "t", .text = "A=1\n"}));
  table_->Stop("50-42-steps", "abc-0");
  outcome_ = Outcome::kGone;
  Handle(TracerPoll(kFreeWithSteps), TracerOf(50));
  EXPECT_FALSE(table_->Find("50-42-steps"));
}

}  // namespace
}  // namespace lockstep::agent
