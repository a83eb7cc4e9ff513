#include "node/agent/capture/capture_manager.h"

#include <fstream>
#include <random>

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
using testing::SizeIs;

std::string Slurp(int fd) {
  std::string text;
  char bytes[4096];
  for (ssize_t count; (count = read(fd, bytes, sizeof(bytes))) > 0;) text.append(bytes, count);
  return text;
}

TEST_F(CaptureManagerTest, ATraceComesFromStartToOpen) {
  TestChild child;
  const control::Process process = Register(child, 3);
  Begin();
  auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(started) << started.error().ToString();
  EXPECT_EQ(started->state, CaptureState::kRunning);
  EXPECT_EQ(started->id.size(), 16u);
  ASSERT_TRUE(WaitForOffer(process));
  const auto text = registry_.Deliver(process.id, Now().wall_ns);
  ASSERT_TRUE(text);
  ASSERT_TRUE(WaitFor([&] { return Get(started->id).targets[0].state == TargetState::kDelivered; }));
  FakeRegistry::WriteTrace(*text, process, "{\"traceEvents\": []}");
  ASSERT_TRUE(WaitForEnd(started->id));
  const Capture done = Get(started->id);
  EXPECT_EQ(done.state, CaptureState::kDone);
  EXPECT_EQ(done.targets[0].trace_bytes, 19u);
  EXPECT_THAT(done.targets[0].trace_name, testing::MatchesRegex("77-node7-rank3-pid[0-9]+-[0-9]{8}T[0-9]{9}Z\\.json"));
  auto open = manager_->Open(started->id, done.targets[0].trace_name, me_);
  ASSERT_TRUE(open) << open.error().ToString();
  EXPECT_EQ(open->size_bytes, 19u);
  EXPECT_EQ(Slurp(open->fd.get()), "{\"traceEvents\": []}");
}

TEST_F(CaptureManagerTest, OnlyTheOwnerAndThoseWhoMayAllSeeIt) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a second user";
  TestChild child(kJobUid);
  const control::Process process = Register(child);
  Begin();
  const Caller stranger = {.uid = 999, .may_trace_all = false, .name = "stranger"};
  const Caller owner = {.uid = kJobUid, .may_trace_all = false, .name = "owner"};
  const Caller nobody = {.uid = {}, .may_trace_all = false, .name = "unknown"};
  for (const Caller& caller : {stranger, nobody}) {
    const auto refused = manager_->Start(CaptureSpec{}, caller);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kPermissionDenied);
  }
  auto started = manager_->Start(CaptureSpec{}, owner);
  ASSERT_TRUE(started) << started.error().ToString();
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitForEnd(started->id));
  const std::string trace = Get(started->id).targets[0].trace_name;
  for (const Caller& caller : {stranger, nobody}) {
    EXPECT_THAT(manager_->List(caller), SizeIs(0));
    EXPECT_EQ(manager_->Get(started->id, caller).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(manager_->Open(started->id, trace, caller).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(manager_->Cancel(started->id, caller).error().code, ErrorCode::kNotFound);
  }
  EXPECT_THAT(manager_->List(owner), SizeIs(1));
  EXPECT_TRUE(manager_->Open(started->id, trace, owner));
  EXPECT_TRUE(manager_->Open(started->id, trace, {.uid = 0, .may_trace_all = true, .name = "root"}));
}

TEST_F(CaptureManagerTest, WithoutAMatchItSaysWhatIsRegistered) {
  Begin();
  auto none = manager_->Start(CaptureSpec{}, me_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("KINETO_USE_DAEMON=1"));
  TestChild child;
  Register(child, 2);
  CaptureSpec spec;
  spec.selector.job_id = "78";
  none = manager_->Start(spec, me_);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("job 78"));
  EXPECT_THAT(none.error().message, HasSubstr("1 of job 77 (ranks 2)"));
}

TEST_F(CaptureManagerTest, ALeadThatWouldLoseRanksIsRefusedWithTheLeastThatWorks) {
  TestChild child;
  Register(child);
  Begin();
  CaptureSpec spec;
  spec.window.start_unix_ns = (Now().wall_ns / kSecondNs + 7) * kSecondNs;
  const auto refused = manager_->Start(spec, me_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("the least that works is 8.0 s"));
  spec.window.start_unix_ns = (Now().wall_ns / kSecondNs + 60) * kSecondNs;
  EXPECT_TRUE(manager_->Start(spec, me_));
}

TEST_F(CaptureManagerTest, OneThatMadeItsFileAndDroppedTheRequestIsAskedAgainAndItsFileRemoved) {
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(WaitForOffer(process));
  const auto text = registry_.Deliver(process.id, Now().wall_ns);
  ASSERT_TRUE(text);
  const std::string unfinished = FakeRegistry::FinalOf(*text, process) + ".tmp";
  std::ofstream(unfinished).close();
  // It polls, and its profiler is free: nothing comes any more.
  registry_.Change(process.id, [](control::Process* p) { p->last_poll_unix_ns = Now().wall_ns + 60 * kSecondNs; });
  ASSERT_TRUE(WaitForOffer(process));
  EXPECT_FALSE(std::filesystem::exists(unfinished));
  EXPECT_THAT(Get(started->id).targets[0].reason, HasSubstr("dropped the request once"));
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitForEnd(started->id));
  EXPECT_EQ(Get(started->id).state, CaptureState::kDone);
  EXPECT_EQ(registry_.placed_count(), 2u);
}

TEST_F(CaptureManagerTest, AStartThatWasMissedIsTakenBack) {
  TestChild child;
  CommonStart begun;
  ASSERT_NO_FATAL_FAILURE(BeginWithCommonStart(child, &begun));
  ASSERT_TRUE(WaitForEnd(begun.id));
  EXPECT_FALSE(registry_.HasOffer(begun.process.id));
  EXPECT_EQ(Get(begun.id).targets[0].state, TargetState::kRefused);
  EXPECT_EQ(Get(begun.id).state, CaptureState::kFailed);
  EXPECT_LT(Get(begun.id).targets[0].finished_unix_ns.value_or(INT64_MAX), begun.start_unix_ns);
  EXPECT_EQ(FileCount(options_.output_folder), 0u);
}

TEST_F(CaptureManagerTest, AProcessTracesOneRequestAtATime) {
  TestChild one, two;
  const control::Process first = Register(one, 0);
  Begin();
  const auto running = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(running);
  ASSERT_TRUE(WaitForOffer(first));
  const auto busy = manager_->Start(CaptureSpec{}, me_);
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(busy.error().message, HasSubstr(running->id));
  // Beside a free one, it waits for its turn.
  const control::Process second = Register(two, 1);
  const auto both = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(both);
  ASSERT_TRUE(Trace(second));
  ASSERT_TRUE(WaitFor([&] { return Get(both->id).targets[0].reason.find(running->id) != std::string::npos; }));
  ASSERT_TRUE(Trace(first));
  ASSERT_TRUE(WaitForEnd(running->id));
  EXPECT_EQ(Get(running->id).state, CaptureState::kDone);
  ASSERT_TRUE(Trace(first));
  ASSERT_TRUE(WaitForEnd(both->id));
  EXPECT_EQ(Get(both->id).state, CaptureState::kDone);
}

TEST_F(CaptureManagerTest, AQueuedRequestIsCancelledAtOnce) {
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(WaitForOffer(process));
  const auto cancelled = manager_->Cancel(started->id, me_);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->state, CaptureState::kCancelled);
  EXPECT_FALSE(registry_.HasOffer(process.id));
  EXPECT_TRUE(manager_->Start(CaptureSpec{}, me_));
  EXPECT_TRUE(manager_->Cancel(started->id, me_));  // Again changes nothing.
}

TEST_F(CaptureManagerTest, AWindowThatCannotBeStoppedKeepsItsProcessBusyToItsEnd) {
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(WaitForOffer(process));
  const auto text = registry_.Deliver(process.id, Now().wall_ns);
  ASSERT_TRUE(WaitForTarget(started->id, TargetState::kDelivered));
  const auto cancelled = manager_->Cancel(started->id, me_);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->state, CaptureState::kCancelled);
  EXPECT_THAT(cancelled->targets[0].reason, HasSubstr("cannot be stopped"));
  EXPECT_FALSE(manager_->Start(CaptureSpec{}, me_));
  FakeRegistry::WriteTrace(*text, process, "{}");
  ASSERT_TRUE(WaitFor([&] { return FileCount(options_.output_folder) == 0; }));
  ASSERT_TRUE(WaitFor([&] { return manager_->Start(CaptureSpec{}, me_).has_value(); }));
  EXPECT_EQ(Get(started->id).targets[0].state, TargetState::kCancelled);
  EXPECT_EQ(Get(started->id).targets[0].trace_name, "");
}

TEST_F(CaptureManagerTest, CancellingAFinishedOneRemovesItsTraces) {
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitForEnd(started->id));
  const std::string name = Get(started->id).targets[0].trace_name;
  const auto open = manager_->Open(started->id, name, me_);
  ASSERT_TRUE(manager_->Cancel(started->id, me_));
  EXPECT_EQ(FileCount(options_.output_folder), 0u);
  EXPECT_FALSE(manager_->Open(started->id, name, me_));
  EXPECT_EQ(Slurp(open->fd.get()), "{}");  // One who is being sent it gets the rest.
  EXPECT_EQ(Get(started->id).state, CaptureState::kDone);
}

TEST_F(CaptureManagerTest, WatchersAreToldOfEachStepUntilTheyLetGo) {
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  std::mutex mutex;
  std::vector<CaptureState> states;
  auto handle = manager_->Watch(started->id, [&](const Capture& capture) {
    const std::lock_guard lock(mutex);
    states.push_back(capture.state);
  });
  std::atomic<int> other = 0;
  const auto unrelated = manager_->Watch("other", [&](const Capture&) { ++other; });
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitFor([&] {
    const std::lock_guard lock(mutex);
    return !states.empty() && states.back() == CaptureState::kDone;
  }));
  handle.reset();
  const size_t count = states.size();
  ASSERT_TRUE(manager_->Cancel(started->id, me_));
  const auto next = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(WaitForOffer(process));  // A round later.
  EXPECT_EQ(states.size(), count);
  EXPECT_EQ(other, 0);
}

TEST_F(CaptureManagerTest, AWatcherMayLetGoOfItselfInACall) {
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  std::mutex mutex;
  std::shared_ptr<void> handle;
  std::atomic<int> calls = 0;
  {
    const std::lock_guard lock(mutex);
    handle = manager_->Watch(started->id, [&](const Capture&) {
      const std::lock_guard inner(mutex);
      ++calls;
      handle.reset();
    });
  }
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitForEnd(started->id));
  ASSERT_TRUE(WaitFor([&] { return calls > 0; }));
  EXPECT_EQ(calls, 1);
}

TEST_F(CaptureManagerTest, TenThousandHostileNamesOpenNothing) {
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitForEnd(started->id));
  const std::string good = Get(started->id).targets[0].trace_name;
  const std::vector<std::string> parts = {"..",
                                          "/",
                                          "\\",
                                          good,
                                          ".",
                                          "%2e%2e",
                                          "%2f",
                                          "etc/passwd",
                                          std::string(1, '\0'),
                                          "~",
                                          "\n",
                                          "file://",
                                          ".tmp",
                                          "\xff\xfe",
                                          "\xe2\x80\xae",
                                          "*",
                                          "$(id)",
                                          "'",
                                          "\"",
                                          std::string(5000, 'a')};
  std::mt19937 random(7);
  for (int i = 0; i < 10'000; ++i) {
    std::string name;
    for (size_t n = random() % 6; n > 0; --n) name += parts[random() % parts.size()];
    if (name == good) continue;
    const auto open = manager_->Open(started->id, name, me_);
    ASSERT_FALSE(open) << name;
    ASSERT_EQ(open.error().code, ErrorCode::kNotFound);
    ASSERT_FALSE(manager_->Open(name, good, me_)) << name;
  }
  EXPECT_TRUE(manager_->Open(started->id, good, me_));
}

TEST_F(CaptureManagerTest, AWaitingCaptureTakesWhatRegisters) {
  Begin();
  CaptureSpec spec;
  spec.wait_ns = 600 * kSecondNs;
  const auto started = manager_->Start(spec, me_);
  ASSERT_TRUE(started);
  EXPECT_EQ(started->state, CaptureState::kWaiting);
  TestChild one, two;
  control::Process first = FakeRegistry::ProcessOf(one.pid(), 0);
  control::Process second = FakeRegistry::ProcessOf(two.pid(), 1);
  first.world_size = second.world_size = 2;
  registry_.Register(first);
  ASSERT_TRUE(WaitFor([&] { return Get(started->id).targets.size() == 1; }));
  EXPECT_EQ(Get(started->id).state, CaptureState::kRunning);
  registry_.Register(second);
  ASSERT_TRUE(Trace(first));
  ASSERT_TRUE(Trace(second));
  ASSERT_TRUE(WaitForEnd(started->id));
  EXPECT_THAT(Get(started->id).targets, SizeIs(2));
  EXPECT_EQ(Get(started->id).state, CaptureState::kDone);
}

TEST_F(CaptureManagerTest, NobodyWaitsForThoseWhoAreForbidden) {
  options_.startup_wait_ns = 3600 * kSecondNs;
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  CaptureSpec spec;
  spec.selector.process_ids = {process.id};
  const Caller stranger = {.uid = geteuid() + 1, .may_trace_all = false, .name = "stranger"};
  const auto refused = manager_->Start(spec, stranger);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPermissionDenied);
  // One of theirs may still register.
  EXPECT_TRUE(manager_->Start(CaptureSpec{}, stranger));
}

TEST_F(CaptureManagerTest, AWaitThatIsOverFailsWithTheReason) {
  options_.startup_wait_ns = kSecondNs / 2;
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(started);
  EXPECT_EQ(started->state, CaptureState::kWaiting);
  ASSERT_TRUE(WaitForEnd(started->id));
  EXPECT_EQ(Get(started->id).state, CaptureState::kFailed);
  EXPECT_THAT(Get(started->id).reason, HasSubstr("no process has registered"));
}

TEST_F(CaptureManagerTest, OverTheQuotaTheOldestTracesGo) {
  options_.trace_quota_bytes = 25;
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    const auto started = manager_->Start(CaptureSpec{}, me_);
    ASSERT_TRUE(started) << started.error().ToString();
    ids.push_back(started->id);
    ASSERT_TRUE(Trace(process, "{\"padding\": 1}"));  // 14 bytes.
    ASSERT_TRUE(WaitForEnd(started->id));
  }
  ASSERT_TRUE(WaitFor([&] { return FileCount(options_.output_folder) == 1; }));
  EXPECT_THAT(Get(ids[0]).targets[0].reason, HasSubstr("removed"));
  EXPECT_EQ(Get(ids[1]).targets[0].trace_name, "");
  EXPECT_NE(Get(ids[2]).targets[0].trace_name, "");
}

TEST_F(CaptureManagerTest, FinishedCapturesGoAfterTheirTime) {
  options_.keep_ns = kSecondNs / 2;
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitFor([&] { return manager_->List(me_).empty(); }));
  EXPECT_TRUE(WaitFor([&] { return FileCount(options_.state_folder) == 0; }));
  EXPECT_EQ(FileCount(options_.output_folder), 0u);
}

TEST_F(CaptureManagerTest, WithoutAStateFolderItStillTracesAndSaysSo) {
  TestChild child;
  const control::Process process = Register(child);
  Begin();
  EXPECT_THAT(manager_->Problems(), SizeIs(0));
  std::filesystem::remove_all(options_.state_folder);
  const auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(started);
  EXPECT_THAT(manager_->Problems(), ElementsAre(HasSubstr("will not survive a restart")));
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitForEnd(started->id));
  EXPECT_EQ(Get(started->id).state, CaptureState::kDone);
}

TEST_F(CaptureManagerTest, IterationsOfAProcessThatCannotCountThemAreRefused) {
  TestChild child;
  control::Process process = FakeRegistry::ProcessOf(child.pid());
  process.counts_iterations = false;
  registry_.Register(process);
  Begin();
  CaptureSpec spec;
  spec.window.mode = control::CaptureWindow::Mode::kIterations;
  spec.window.iterations = 3;
  const auto refused = manager_->Start(spec, me_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(refused.error().message, HasSubstr("KINETO_USE_DAEMON"));
}

TEST_F(CaptureManagerTest, WhatNoProcessCanBeToldIsInvalidAndLeavesNothing) {
  TestChild child;
  Register(child);
  Begin();
  CaptureSpec spec;
  spec.window.duration_ns = 5;
  EXPECT_EQ(manager_->Start(spec, me_).error().code, ErrorCode::kInvalidArgument);
  spec = {};
  spec.group = "a b";
  EXPECT_EQ(manager_->Start(spec, me_).error().code, ErrorCode::kInvalidArgument);
  spec = {};
  spec.timeout_ns = 1;
  EXPECT_EQ(manager_->Start(spec, me_).error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(manager_->List(me_), SizeIs(0));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options_.output_folder, error)) {
    ADD_FAILURE() << entry.path();
  }
}

TEST_F(CaptureManagerTest, AForeignFileIsReadAndNeverRemoved) {
  TestChild child;
  const control::Process process = Register(child, 4);
  Begin();
  const std::string folder = folder_ + "/foreign";
  const ForeignOutput output = {.log_file = folder + "/dyno.json"};
  EXPECT_EQ(manager_->Start(CaptureSpec{}, me_, output).error().code, ErrorCode::kFailedPrecondition);
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  EXPECT_EQ(manager_->Start(CaptureSpec{}, me_, {.log_file = folder + "/../x.json"}).error().code,
            ErrorCode::kInvalidArgument);
  std::filesystem::create_directory_symlink(folder, folder_ + "/link");
  EXPECT_EQ(manager_->Start(CaptureSpec{}, me_, {.log_file = folder_ + "/link/x.json"}).error().code,
            ErrorCode::kFailedPrecondition);
  const auto started = manager_->Start(CaptureSpec{}, me_, output);
  ASSERT_TRUE(started) << started.error().ToString();
  ASSERT_TRUE(Trace(process));
  ASSERT_TRUE(WaitForEnd(started->id));
  const Capture done = Get(started->id);
  EXPECT_EQ(done.state, CaptureState::kDone);
  EXPECT_THAT(done.targets[0].trace_name, HasSubstr("-rank4-pid"));
  EXPECT_TRUE(manager_->Open(started->id, done.targets[0].trace_name, me_));
  const std::string file = fmt::format("{}/dyno_{}.json", folder, child.pid());
  EXPECT_TRUE(std::filesystem::exists(file));
  ASSERT_TRUE(manager_->Cancel(started->id, me_));
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(manager_->Start(CaptureSpec{}, me_, output).error().code, ErrorCode::kFailedPrecondition);  // Is there.
}

}  // namespace
}  // namespace lockstep::agent
