#include "agent/kineto/process_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace lockstep::agent {
namespace {

using control::ProcessRole;
using control::ProcessState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = RegistryEvent::Kind;

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kNsPerS = 1'000'000'000;
constexpr int64_t kStart = 1'700'000'000 * kNsPerS;

/// A table, a clock that only moves when told, and a sink that keeps what was sent.
class ProcessTableTest : public ::testing::Test, protected ReplySink {
 protected:
  ProcessTableTest() { Make({}); }

  void Make(ProcessTableOptions options) {
    options.host = "n001";
    options.wall_clock_ns = [this] { return now_ns_ + clock_step_ns_ * clock_reads_++; };
    table_ = std::make_unique<ProcessTable>(std::move(options));
  }

  Outcome Send(const Sender& to, std::span<const std::byte> header, std::string_view payload) override {
    EXPECT_EQ(header.size(), kHeaderBytes);
    if (outcome_ != Outcome::kSent) return outcome_;
    now_ns_ += send_takes_ns_;
    sent_to_.push_back(to.address);
    sent_.emplace_back(payload);
    return outcome_;
  }

  ProcessTable::Next Handle(const std::vector<std::byte>& bytes, const Sender& sender, int64_t age_ns = 0) {
    return table_->Handle({.bytes = bytes,
                           .sender = sender,
                           .sent_unix_ns = now_ns_ - age_ns,
                           .now_unix_ns = now_ns_,
                           .now_monotonic_ns = now_ns_ - kStart},
                          this);
  }
  ProcessTable::Next Poll(const Sender& sender, int32_t mask = 3, int64_t age_ns = 0) {
    return Handle(WritePoll({.mask = mask, .job_id = 0, .pids = {sender.pid, 1000}}), sender, age_ns);
  }

  static Sender From(int32_t pid, uint32_t uid = 7) {
    return {.socket_idx = 0, .address = std::string("\0client", 7) + std::to_string(pid), .pid = pid, .uid = uid};
  }
  /// Registers and publishes it; its id.
  std::string Register(const Sender& sender, proc::ProcessDetails details = {}) {
    details.start_ticks = 42;
    table_->SetDetails(Poll(sender).new_client, details, false);
    return std::to_string(sender.pid) + "-42";
  }
  std::vector<Kind> EventKinds() {
    std::vector<Kind> kinds;
    for (const RegistryEvent& event : table_->TakeEvents()) kinds.push_back(event.kind);
    return kinds;
  }
  ProcessState StateOf(const std::string& id) { return table_->Find(id)->state; }

  int64_t now_ns_ = kStart;
  int64_t clock_step_ns_ = 0;
  int64_t clock_reads_ = 0;
  int64_t send_takes_ns_ = 0;
  Outcome outcome_ = Outcome::kSent;
  std::vector<std::string> sent_;
  std::vector<std::string> sent_to_;
  std::unique_ptr<ProcessTable> table_;
};

TEST_F(ProcessTableTest, FirstPollRegistersAndIsAnsweredEmpty) {
  const auto next = Poll(From(50));
  EXPECT_NE(next.new_client, 0u);
  EXPECT_THAT(sent_, ElementsAre(""));
  EXPECT_THAT(sent_to_, ElementsAre(From(50).address));
  EXPECT_THAT(table_->Processes(), IsEmpty()) << "it has no id before its start time is known";
  table_->SetDetails(next.new_client, {.start_ticks = 9, .rank = 3}, false);
  const auto processes = table_->Processes();
  ASSERT_THAT(processes, SizeIs(1));
  EXPECT_EQ(processes[0].id, "50-9");
  EXPECT_EQ(processes[0].pid, 50);
  EXPECT_EQ(processes[0].uid, 7u);
  EXPECT_EQ(processes[0].rank, 3);
  EXPECT_EQ(processes[0].host, "n001");
  EXPECT_EQ(processes[0].socket, "abstract");
  EXPECT_THAT(processes[0].client_pids, ElementsAre(50, 1000));
  EXPECT_THAT(EventKinds(), ElementsAre(Kind::kRegistered));
}

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
  now_ns_ += 3 * kNsPerS;
  EXPECT_THAT(table_->Processes(), SizeIs(2)) << "it steps nothing, or not yet";
}

TEST_F(ProcessTableTest, ATracerThatHasFallenSilentLeavesTheProcessToKinetoUnlessItTraces) {
  const std::string kineto = Register(From(50));
  table_->SetDetails(Handle(TracerPoll(kFreeWithSteps), TracerOf(50)).new_client, {.start_ticks = 42}, false);
  const auto pass = [&](const int32_t mask) {
    Handle(TracerPoll(mask), TracerOf(50));
    for (int i = 0; i < 30; ++i) {
      now_ns_ += kNsPerS;
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
  Handle(TracerPoll(kFreeWithSteps), TracerOf(50), 2 * kNsPerS);
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

TEST_F(ProcessTableTest, EveryPollHasOneReply) {
  const std::string id = Register(From(50));
  for (int i = 0; i < 10; ++i) {
    now_ns_ += kNsPerS;
    Poll(From(50));
  }
  EXPECT_THAT(sent_, SizeIs(11));
}

TEST_F(ProcessTableTest, AnOfferMayStartSoMuchAfterItsDelivery) {
  const std::string id = Register(From(50));
  ASSERT_TRUE(table_->Place(id, {.token = "t", .text = "A=1\n", .start_after_ns = 3'500'000'000}));
  sent_.clear();
  now_ns_ += 5 * kNsPerS;
  Poll(From(50));
  EXPECT_THAT(sent_, ElementsAre(fmt::format("A=1\nPROFILE_START_TIME={}\n", now_ns_ / 1'000'000 + 3500)));
}

TEST_F(ProcessTableTest, OfferIsDeliveredOnceToAFreePoll) {
  const std::string id = Register(From(50));
  ASSERT_TRUE(table_->Place(id, {.token = "t", .text = "A=1\n"}));
  EXPECT_EQ(table_->Place(id, {.token = "u", .text = "A=1\n"}).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(StateOf(id), ProcessState::kRequested);
  sent_.clear();
  Poll(From(50), 1);
  EXPECT_EQ(StateOf(id), ProcessState::kTracing);
  Poll(From(50));
  Poll(From(50));
  EXPECT_THAT(sent_, ElementsAre("", "A=1\n", ""));
  const auto events = table_->TakeEvents();
  ASSERT_THAT(events, SizeIs(4));
  EXPECT_EQ(events[1].kind, Kind::kBusy);
  EXPECT_EQ(events[2].kind, Kind::kFree);
  EXPECT_EQ(events[3].kind, Kind::kDelivered);
  EXPECT_EQ(events[3].token, "t");
  EXPECT_FALSE(table_->Withdraw(id, "t"));
}

TEST_F(ProcessTableTest, DeliveredProcessIsRequestedUntilItIsBusyOrGivenUp) {
  const std::string id = Register(From(50));
  ASSERT_TRUE(table_->Place(id, {.token = "t", .text = "A=1\n"}));
  Poll(From(50));
  EXPECT_EQ(StateOf(id), ProcessState::kRequested);
  Poll(From(50), 0);
  EXPECT_EQ(StateOf(id), ProcessState::kTracing);
  Poll(From(50), 2);
  EXPECT_EQ(StateOf(id), ProcessState::kIdle);
  ASSERT_TRUE(table_->Place(id, {.token = "u", .text = "A=1\n"}));
  Poll(From(50));
  EXPECT_FALSE(table_->Withdraw(id, "u"));
  EXPECT_EQ(StateOf(id), ProcessState::kIdle);
  ASSERT_TRUE(table_->Place(id, {.token = "v", .text = "A=1\n"}));
  Poll(From(50));
  now_ns_ += 61 * kNsPerS;
  EXPECT_EQ(StateOf(id), ProcessState::kIdle);
}

TEST_F(ProcessTableTest, OfferWaitsForItsTime) {
  const std::string id = Register(From(50));
  ASSERT_TRUE(table_->Place(id, {.token = "t", .text = "A=1\n", .deliver_from_unix_ns = now_ns_ + 3 * kNsPerS}));
  sent_.clear();
  for (int i = 0; i < 5; ++i) {
    now_ns_ += kNsPerS;
    Poll(From(50));
  }
  EXPECT_THAT(sent_, ElementsAre("", "", "A=1\n", "", ""));
}

TEST_F(ProcessTableTest, WithdrawnOfferIsNotDelivered) {
  const std::string id = Register(From(50));
  ASSERT_TRUE(table_->Place(id, {.token = "t", .text = "A=1\n"}));
  EXPECT_FALSE(table_->Withdraw(id, "other"));
  EXPECT_TRUE(table_->Withdraw(id, "t"));
  sent_.clear();
  Poll(From(50));
  EXPECT_THAT(sent_, ElementsAre(""));
}

TEST_F(ProcessTableTest, FailedSendKeepsTheOfferAndADeadAddressEndsTheProcess) {
  const std::string id = Register(From(50));
  ASSERT_TRUE(table_->Place(id, {.token = "t", .text = "A=1\n"}));
  outcome_ = Outcome::kFailed;
  Poll(From(50));
  EXPECT_EQ(StateOf(id), ProcessState::kRequested);
  outcome_ = Outcome::kSent;
  sent_.clear();
  Poll(From(50));
  EXPECT_THAT(sent_, ElementsAre("A=1\n"));
  outcome_ = Outcome::kGone;
  Poll(From(50));
  EXPECT_FALSE(table_->Find(id));
  EXPECT_THAT(EventKinds(), ElementsAre(Kind::kRegistered, Kind::kDelivered, Kind::kEnded));
  EXPECT_THAT(table_->TakeEnded(), SizeIs(1));
}

TEST_F(ProcessTableTest, HowAProcessEndedIsTold) {
  const uint64_t serial = Poll(From(50)).new_client;
  table_->SetDetails(serial, {.start_ticks = 42}, false);
  table_->End(serial, {.unix_ns = 77, .signal = 11});
  const auto events = table_->TakeEvents();
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[1].kind, Kind::kEnded);
  EXPECT_EQ(events[1].end.signal, 11);
  EXPECT_EQ(events[1].end.unix_ns, 77);
}

TEST_F(ProcessTableTest, LateRequestsStayUnansweredAndCountAsPolls) {
  const std::string id = Register(From(50));
  ASSERT_TRUE(table_->Place(id, {.token = "t", .text = "A=1\n"}));
  sent_.clear();
  now_ns_ += 10 * kNsPerS;
  Poll(From(50), 3, 10 * kNsPerS);
  Poll(From(50), 3, 5 * kNsPerS);
  Poll(From(50), 3, 40 * kNsPerMs);
  Poll(From(50), 3, -5 * kNsPerMs);
  EXPECT_THAT(sent_, IsEmpty());
  EXPECT_EQ(table_->Counters().late, 4u);
  now_ns_ += 5 * kNsPerS;
  Poll(From(50), 3, 30 * kNsPerMs);
  EXPECT_THAT(sent_, ElementsAre("A=1\n"));
}

TEST_F(ProcessTableTest, ReplyThatMayHaveBeenMissedCostsThePollAfterItItsAnswer) {
  const std::string id = Register(From(50));
  sent_.clear();
  send_takes_ns_ = 60 * kNsPerMs;
  Poll(From(50));
  send_takes_ns_ = 0;
  ASSERT_TRUE(table_->Place(id, {.token = "t", .text = "A=1\n"}));
  Poll(From(50));
  Poll(From(50));
  EXPECT_THAT(sent_, ElementsAre("", "A=1\n"));
  EXPECT_EQ(table_->Counters().withheld, 1u);
}

TEST_F(ProcessTableTest, SilenceThatIsOwedIsKeptOnce) {
  Poll(From(50));
  table_->OweSilence(1);
  table_->OweSilence(1);
  table_->OweSilence(99);
  Poll(From(50));
  Poll(From(50));
  EXPECT_THAT(sent_, SizeIs(2));
}

TEST_F(ProcessTableTest, OtherCredentialsOnAKnownAddressAreRejected) {
  const std::string id = Register(From(50));
  Sender forged = From(50);
  forged.pid = 51;
  Poll(forged);
  EXPECT_EQ(table_->Counters().forged, 1u);
  EXPECT_THAT(sent_, SizeIs(1));
  EXPECT_THAT(table_->Processes(), SizeIs(1));
}

TEST_F(ProcessTableTest, ProcessThatChangesItsUserRegistersAnew) {
  const std::string id = Register(From(50, 0));
  Sender other = From(50, 1000);
  table_->SetDetails(Poll(other).new_client, {.start_ticks = 42}, false);
  ASSERT_THAT(table_->Processes(), SizeIs(1));
  EXPECT_EQ(table_->Processes()[0].uid, 1000u);
  EXPECT_THAT(EventKinds(), ElementsAre(Kind::kRegistered, Kind::kEnded, Kind::kRegistered));
}

TEST_F(ProcessTableTest, UserCannotTakeAllThePlaces) {
  Make({.client_limit = 8, .uid_client_limit = 4});
  for (int32_t pid = 1; pid <= 20; ++pid) Poll(From(pid, 7));
  EXPECT_EQ(table_->client_count(), 4u);
  EXPECT_EQ(table_->Counters().limited, 16u);
  for (int32_t pid = 101; pid <= 120; ++pid) Poll(From(pid, static_cast<uint32_t>(pid)));
  EXPECT_EQ(table_->client_count(), 8u);
}

TEST_F(ProcessTableTest, ProcessHasFourAddressesAtMost) {
  for (char name = 'a'; name < 'z'; ++name)
    Poll({.socket_idx = 0, .address = std::string("\0x", 2) + name, .pid = 5, .uid = 7});
  EXPECT_EQ(table_->client_count(), 4u);
}

TEST_F(ProcessTableTest, FloodFromOneAddressIsSlowedDown) {
  for (int i = 0; i < 1000; ++i) Poll(From(50));
  EXPECT_THAT(sent_, SizeIs(20));
  EXPECT_EQ(table_->Counters().limited, 980u);
  now_ns_ += kNsPerS;
  Poll(From(50));
  EXPECT_THAT(sent_, SizeIs(21));
}

TEST_F(ProcessTableTest, ThreePeriodsWithoutAPollAreSilence) {
  const std::string id = Register(From(50));
  for (int i = 0; i < 5; ++i) {
    now_ns_ += kNsPerS;
    Poll(From(50));
  }
  EXPECT_EQ(table_->Find(id)->poll_period_ns, kNsPerS);
  EventKinds();
  for (int i = 0; i < 4; ++i) {
    now_ns_ += kNsPerS;
    EXPECT_THAT(table_->Sweep(now_ns_ - kStart).silent_clients, IsEmpty());
  }
  now_ns_ += kNsPerS;
  EXPECT_THAT(table_->Sweep(now_ns_ - kStart).silent_clients, SizeIs(1));
  EXPECT_EQ(StateOf(id), ProcessState::kSilent);
  Poll(From(50));
  EXPECT_EQ(StateOf(id), ProcessState::kIdle);
  EXPECT_THAT(EventKinds(), ElementsAre(Kind::kSilent));
}

TEST_F(ProcessTableTest, StoppedDaemonDoesNotCallItsClientsSilent) {
  const std::string id = Register(From(50));
  table_->Sweep(now_ns_ - kStart + 1);
  now_ns_ += 1000 * kNsPerS;
  EXPECT_THAT(table_->Sweep(now_ns_ - kStart).silent_clients, IsEmpty());
  EXPECT_EQ(StateOf(id), ProcessState::kIdle);
}

TEST_F(ProcessTableTest, SilentProcessThatCannotBeSeenIsForgotten) {
  Sender hidden = From(0);
  table_->SetDetails(Poll(hidden).new_client, {}, false);
  ASSERT_THAT(table_->Processes(), SizeIs(1));
  EXPECT_TRUE(table_->Processes()[0].id.starts_with("0-"));
  for (int i = 0; i < 40; ++i) {
    now_ns_ += kNsPerS;
    table_->Sweep(now_ns_ - kStart);
  }
  EXPECT_THAT(table_->Processes(), IsEmpty());
  EXPECT_EQ(table_->Sweep(now_ns_ - kStart).next_monotonic_ns, 0) << "an empty table needs no waking";
}

TEST_F(ProcessTableTest, ContextIsAnsweredWithTheCountOnItsDevice) {
  Handle(WriteContext({.device_ordinal = 1, .pid = 50, .job_id = 9}), From(50));
  Handle(WriteContext({.device_ordinal = 1, .pid = 51, .job_id = 9}), From(51));
  Handle(WriteContext({.device_ordinal = 2, .pid = 52, .job_id = 9}), From(52));
  EXPECT_THAT(sent_, ElementsAre(std::string("\1\0\0\0", 4), std::string("\2\0\0\0", 4), std::string("\1\0\0\0", 4)));
}

TEST_F(ProcessTableTest, BlankAndHugeTextsAreNeverSent) {
  const std::string id = Register(From(50));
  EXPECT_EQ(table_->Place(id, {.token = "t", .text = "\n"}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(table_->Place(id, {.token = "t", .text = std::string(100'000, 'a')}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(table_->Place("1-1", {.token = "t", .text = "A=1\n"}).error().code, ErrorCode::kNotFound);
}

TEST_F(ProcessTableTest, ProcessesComeByJobThenRankThenPid) {
  Register(From(50), {.rank = 10, .job_id = "9"});
  Register(From(51), {.rank = 2, .job_id = "9"});
  Register(From(52), {.job_id = "9"});
  Register(From(53), {.rank = 11, .job_id = "8"});
  std::vector<int32_t> pids;
  for (const auto& process : table_->Processes()) pids.push_back(process.pid);
  EXPECT_THAT(pids, ElementsAre(53, 51, 50, 52));
}

TEST_F(ProcessTableTest, LaunchersAndHelpersAreTold) {
  Register(From(50));                                          // torchrun
  Register(From(51), {.ancestors = {50, 2}, .rank = 0});       // rank
  Register(From(52), {.ancestors = {51, 50, 2}, .rank = 0});   // its DataLoader worker
  Register(From(53), {.ancestors = {2}});                      // a lone process
  Register(From(54), {.ancestors = {53, 2}, .helper = true});  // its compiler
  std::vector<ProcessRole> roles;
  for (const int32_t pid : {50, 51, 52, 53, 54}) roles.push_back(table_->Find(std::to_string(pid) + "-42")->role);
  EXPECT_THAT(roles, ElementsAre(ProcessRole::kLauncher, ProcessRole::kTrainer, ProcessRole::kHelper,
                                 ProcessRole::kTrainer, ProcessRole::kHelper));
}

TEST_F(ProcessTableTest, TenThousandRandomDatagramsChangeNothingForOthers) {
  const std::string id = Register(From(50));
  std::mt19937 random(7);
  const auto seed = WritePoll({.mask = 3, .job_id = 1, .pids = {7, 6, 5}});
  for (int round = 0; round < 10'000; ++round) {
    now_ns_ += kNsPerMs;
    auto bytes = seed;
    for (uint32_t change = 1 + random() % 4; change > 0; --change)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    if (random() % 2 == 0) bytes.resize(random() % 120);
    Handle(bytes, From(static_cast<int32_t>(100 + random() % 50), 8), static_cast<int64_t>(random() % 50) * kNsPerMs);
  }
  EXPECT_EQ(table_->Counters().datagrams, 10'001u);
  EXPECT_LE(table_->client_count(), 51u);
  sent_.clear();
  ASSERT_TRUE(table_->Place(id, {.token = "t", .text = "A=1\n"}));
  Poll(From(50));
  EXPECT_THAT(sent_, ElementsAre("A=1\n"));
}

}  // namespace
}  // namespace lockstep::agent
