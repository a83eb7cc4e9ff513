#include <fstream>

#include "base/nanoseconds.h"
#include "node/agent/capture/capture_manager_fixture.h"

namespace lockstep::agent {
namespace {

using control::Capture;
using control::CaptureSpec;
using control::CaptureState;
using control::TargetState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class CaptureRestartTest : public CaptureManagerTest {
 protected:
  /// A capture that waits for the process's poll when its daemon ends.
  std::string LeaveQueued(const control::Process& process) {
    Begin();
    const auto started = manager_->Start(CaptureSpec{}, me_);
    EXPECT_TRUE(started && WaitForOffer(process));
    manager_.reset();
    return started ? started->id : "";
  }
  /// What the process does with what it was told survives our daemon: kept beside.
  std::string MarkOf(const control::Process& process) const { return folder_ + "/told-" + process.id; }
  void Fetch(const control::Process& process) {
    // The mark first: a daemon that is killed between the two asks again.
    const auto offer = registry_.OfferOf(process.id);
    if (!offer) return;
    std::ofstream(MarkOf(process) + ".new") << offer->text;
    rename((MarkOf(process) + ".new").c_str(), MarkOf(process).c_str());
    registry_.Deliver(process.id, Now().wall_ns);
  }
  void Work(const control::Process& process) {
    const auto text = ReadSmallFile(MarkOf(process));
    if (text && !std::filesystem::exists(FakeRegistry::FinalOf(*text, process))) {
      FakeRegistry::WriteTrace(*text, process, "{}");
    }
  }
};

TEST_F(CaptureRestartTest, AQueuedOneIsPlacedAgain) {
  TestChild child;
  const control::Process process = Register(child, 1);
  const std::string id = LeaveQueued(process);
  registry_.Forget(process.id);
  Begin();
  ASSERT_TRUE(WaitFor([&] { return !Get(id).targets.empty(); }));
  EXPECT_EQ(Get(id).targets[0].state, TargetState::kQueued);
  registry_.Register(process);
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitForEnd(id));
  EXPECT_EQ(Get(id).state, CaptureState::kDone);
}

TEST_F(CaptureRestartTest, OneThatMayHaveBeenFetchedInTheLastMomentIsNotAskedASecondTime) {
  TestChild child;
  const control::Process process = Register(child, 1);
  const std::string id = LeaveQueued(process);
  Fetch(process);  // The daemon that handed it over does not get to say so.
  registry_.Forget(process.id);
  options_.restored_wait_ns = 600 * kSecondNs;
  Begin();
  registry_.Register(process);
  Work(process);
  ASSERT_TRUE(WaitForEnd(id));
  EXPECT_EQ(Get(id).state, CaptureState::kDone);
  EXPECT_EQ(registry_.placed_count(), 1u);
}

TEST_F(CaptureRestartTest, OneThatWasNotFetchedIsPlacedAfterTheWait) {
  TestChild child;
  const control::Process process = Register(child, 1);
  const std::string id = LeaveQueued(process);
  registry_.Forget(process.id);
  options_.restored_wait_ns = kSecondNs;
  Begin();
  registry_.Register(process);
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitForEnd(id));
  EXPECT_EQ(Get(id).state, CaptureState::kDone);
  EXPECT_EQ(registry_.placed_count(), 2u);
}

TEST_F(CaptureRestartTest, OneThatMissedItsCommonStartMeanwhileIsTracedByItself) {
  TestChild child;
  CommonStart begun;
  ASSERT_NO_FATAL_FAILURE(BeginWithCommonStart(child, &begun));
  EXPECT_THAT(registry_.OfferOf(begun.process.id)->text, HasSubstr("PROFILE_START_TIME"));
  manager_.reset();
  registry_.Forget(begun.process.id);
  ASSERT_TRUE(WaitFor([&] { return Now().wall_ns > begun.start_unix_ns; }));
  for (int i = 0; i < 2; ++i) {  // It is remembered over one more restart.
    manager_.reset();
    registry_.Forget(begun.process.id);
    Begin();
    registry_.Register(begun.process);
    ASSERT_TRUE(WaitFor([&] { return Get(begun.id).targets.at(0).missed_start_unix_ns.has_value(); }));
    ASSERT_TRUE(WaitForOffer(begun.process));
    EXPECT_THAT(registry_.OfferOf(begun.process.id)->text, Not(HasSubstr("PROFILE_START_TIME")));
  }
  ASSERT_TRUE(Trace(begun.process));
  ASSERT_TRUE(WaitForEnd(begun.id));
  const Capture done = Get(begun.id);
  EXPECT_EQ(done.state, CaptureState::kDone);
  EXPECT_EQ(done.targets[0].missed_start_unix_ns, begun.start_unix_ns);
  EXPECT_THAT(done.targets[0].reason, HasSubstr("missed the common start at "));
}

TEST_F(CaptureRestartTest, ADeliveredOneIsFollowedToItsFile) {
  TestChild child;
  const control::Process process = Register(child, 1);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(WaitForOffer(process));
  Fetch(process);
  ASSERT_TRUE(WaitForTarget(started->id, TargetState::kDelivered));
  manager_.reset();
  registry_.Forget(process.id);
  Work(process);  // While no daemon runs.
  Begin();
  ASSERT_TRUE(WaitForEnd(started->id));
  const Capture done = Get(started->id);
  EXPECT_EQ(done.state, CaptureState::kDone);
  EXPECT_TRUE(manager_->Open(started->id, done.targets[0].trace_name, me_));
  manager_.reset();
  Begin();  // And a finished one can be sent by the next.
  EXPECT_TRUE(manager_->Open(started->id, done.targets[0].trace_name, me_));
}

TEST_F(CaptureRestartTest, OnesWhoseProcessEndedMeanwhileAreDoneOrDied) {
  TestChild one, two, three;
  const control::Process wrote = Register(one, 0);
  const control::Process began = Register(two, 1);
  const control::Process queued = Register(three, 2);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(WaitForOffer(wrote) && WaitForOffer(began) && WaitForOffer(queued));
  Fetch(wrote);
  Fetch(began);
  ASSERT_TRUE(WaitForTarget(started->id, TargetState::kDelivered, 1));
  manager_.reset();
  Work(wrote);
  for (TestChild* child : {&one, &two, &three}) child->End();
  for (const auto* process : {&wrote, &began, &queued}) registry_.Forget(process->id);
  Begin();
  ASSERT_TRUE(WaitForEnd(started->id));
  const Capture partial = Get(started->id);
  EXPECT_EQ(partial.state, CaptureState::kPartial);
  EXPECT_EQ(partial.targets[0].state, TargetState::kDone);
  EXPECT_EQ(partial.targets[1].state, TargetState::kDied);
  EXPECT_EQ(partial.targets[2].state, TargetState::kDied);
}

TEST_F(CaptureRestartTest, AWaitingOneGoesOnWaiting) {
  Begin();
  CaptureSpec spec;
  spec.wait_ns = 600 * kSecondNs;
  const auto started = manager_->Start(spec, me_);
  ASSERT_TRUE(started);
  manager_.reset();
  Begin();
  EXPECT_EQ(Get(started->id).state, CaptureState::kWaiting);
  TestChild child;
  control::Process process = FakeRegistry::ProcessOf(child.pid(), 0);
  process.world_size = 1;
  registry_.Register(process);
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitForEnd(started->id));
  EXPECT_EQ(Get(started->id).state, CaptureState::kDone);
}

TEST_F(CaptureRestartTest, ACancelledOneIsNotTakenUp) {
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(WaitForOffer(process));
  Fetch(process);
  ASSERT_TRUE(WaitForTarget(started->id, TargetState::kDelivered));
  ASSERT_TRUE(manager_->Cancel(started->id, me_));
  manager_.reset();
  Work(process);
  EXPECT_EQ(FileCount(options_.output_folder), 1u);
  Begin();
  EXPECT_EQ(Get(started->id).state, CaptureState::kCancelled);
  EXPECT_TRUE(WaitFor([&] { return FileCount(options_.output_folder) == 0; }));
}

TEST_F(CaptureRestartTest, ADamagedStateIsSetAsideAndSaid) {
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitForEnd(started->id));
  manager_.reset();
  std::ofstream(options_.state_folder + "/aaaaaaaaaaaaaaaa.json") << "{\"version\": 1, \"capt";
  std::filesystem::copy(options_.state_folder + "/" + started->id + ".json",
                        options_.state_folder + "/bbbbbbbbbbbbbbbb.json");
  Begin();
  EXPECT_EQ(Get(started->id).state, CaptureState::kDone);
  EXPECT_THAT(manager_->List(me_), SizeIs(1));
  EXPECT_THAT(manager_->Problems(), ElementsAre(HasSubstr("aaaaaaaaaaaaaaaa"), HasSubstr("bbbbbbbbbbbbbbbb")));
  EXPECT_TRUE(std::filesystem::exists(options_.state_folder + "/aaaaaaaaaaaaaaaa.json.corrupt"));
}

// A daemon in a process of its own is killed at many moments of one capture: the next finds it, and it ends whole.
TEST_F(CaptureRestartTest, KilledAtAnyMomentNoCaptureIsLost) {
  TestChild child;
  const control::Process process = FakeRegistry::ProcessOf(child.pid(), 0);
  size_t found = 0;
  for (int round = 0; round < 24; ++round) {
    std::filesystem::remove(MarkOf(process));
    int answered[2];
    ASSERT_EQ(pipe(answered), 0);
    const pid_t daemon = fork();
    if (daemon == 0) {
      registry_.Register(process);
      auto manager = CaptureManager::Create(options_, &registry_);
      if (!manager) _exit(1);
      const auto started = (*manager)->Start(CaptureSpec{}, me_);
      if (!started || write(answered[1], started->id.data(), 16) != 16) _exit(1);
      for (int i = 0; i < 2000; ++i) {
        usleep(5000);
        Fetch(process);
        if (i % 8 == 7) Work(process);
      }
      _exit(0);
    }
    char id[17] = {};
    close(answered[1]);
    ASSERT_EQ(read(answered[0], id, 16), 16);
    close(answered[0]);
    usleep(static_cast<useconds_t>(round) * 20'000);  // Across all that a capture goes through.
    kill(daemon, SIGKILL);
    waitpid(daemon, nullptr, 0);

    registry_.Register(process);
    Begin();
    const bool ended = WaitFor([&] {
      Fetch(process);
      Work(process);
      return IsFinal(Get(id).state);
    });
    ASSERT_TRUE(ended) << round;
    const Capture done = Get(id);
    EXPECT_EQ(done.state, CaptureState::kDone) << round << " " << done.reason;
    EXPECT_TRUE(manager_->Open(id, done.targets[0].trace_name, me_)) << round;
    EXPECT_THAT(manager_->Problems(), SizeIs(0)) << round;
    found += done.state == CaptureState::kDone ? 1 : 0;
    manager_.reset();
    registry_.Forget(process.id);
  }
  EXPECT_EQ(found, 24u);
}

}  // namespace
}  // namespace lockstep::agent
