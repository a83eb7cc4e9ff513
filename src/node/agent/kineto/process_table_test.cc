#include "node/agent/kineto/process_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/nanoseconds.h"
#include "node/agent/kineto/testing/process_table_fixture.h"

namespace lockstep::agent {
namespace {

using control::ProcessRole;
using control::ProcessState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = RegistryEvent::Kind;

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

TEST_F(ProcessTableTest, EveryPollHasOneReply) {
  const std::string id = Register(From(50));
  for (int i = 0; i < 10; ++i) {
    now_ns_ += kSecondNs;
    Poll(From(50));
  }
  EXPECT_THAT(sent_, SizeIs(11));
}

TEST_F(ProcessTableTest, AnOfferMayStartSoMuchAfterItsDelivery) {
  const std::string id = Register(From(50));
  ASSERT_TRUE(table_->Place(id, {.token = "t", .text = "A=1\n", .start_after_ns = 3'500'000'000}));
  sent_.clear();
  now_ns_ += 5 * kSecondNs;
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
  now_ns_ += 61 * kSecondNs;
  EXPECT_EQ(StateOf(id), ProcessState::kIdle);
}

TEST_F(ProcessTableTest, OfferWaitsForItsTime) {
  const std::string id = Register(From(50));
  ASSERT_TRUE(table_->Place(id, {.token = "t", .text = "A=1\n", .deliver_from_unix_ns = now_ns_ + 3 * kSecondNs}));
  sent_.clear();
  for (int i = 0; i < 5; ++i) {
    now_ns_ += kSecondNs;
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
  now_ns_ += 10 * kSecondNs;
  Poll(From(50), 3, 10 * kSecondNs);
  Poll(From(50), 3, 5 * kSecondNs);
  Poll(From(50), 3, 40 * kMillisecondNs);
  Poll(From(50), 3, -5 * kMillisecondNs);
  EXPECT_THAT(sent_, IsEmpty());
  EXPECT_EQ(table_->Counters().late, 4u);
  now_ns_ += 5 * kSecondNs;
  Poll(From(50), 3, 30 * kMillisecondNs);
  EXPECT_THAT(sent_, ElementsAre("A=1\n"));
}

TEST_F(ProcessTableTest, ReplyThatMayHaveBeenMissedCostsThePollAfterItItsAnswer) {
  const std::string id = Register(From(50));
  sent_.clear();
  send_takes_ns_ = 60 * kMillisecondNs;
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
  now_ns_ += kSecondNs;
  Poll(From(50));
  EXPECT_THAT(sent_, SizeIs(21));
}

TEST_F(ProcessTableTest, ThreePeriodsWithoutAPollAreSilence) {
  const std::string id = Register(From(50));
  for (int i = 0; i < 5; ++i) {
    now_ns_ += kSecondNs;
    Poll(From(50));
  }
  EXPECT_EQ(table_->Find(id)->poll_period_ns, kSecondNs);
  EventKinds();
  for (int i = 0; i < 4; ++i) {
    now_ns_ += kSecondNs;
    EXPECT_THAT(table_->Sweep(now_ns_ - kStart).silent_clients, IsEmpty());
  }
  now_ns_ += kSecondNs;
  EXPECT_THAT(table_->Sweep(now_ns_ - kStart).silent_clients, SizeIs(1));
  EXPECT_EQ(StateOf(id), ProcessState::kSilent);
  Poll(From(50));
  EXPECT_EQ(StateOf(id), ProcessState::kIdle);
  EXPECT_THAT(EventKinds(), ElementsAre(Kind::kSilent));
}

TEST_F(ProcessTableTest, StoppedDaemonDoesNotCallItsClientsSilent) {
  const std::string id = Register(From(50));
  table_->Sweep(now_ns_ - kStart + 1);
  now_ns_ += 1000 * kSecondNs;
  EXPECT_THAT(table_->Sweep(now_ns_ - kStart).silent_clients, IsEmpty());
  EXPECT_EQ(StateOf(id), ProcessState::kIdle);
}

TEST_F(ProcessTableTest, SilentProcessThatCannotBeSeenIsForgotten) {
  Sender hidden = From(0);
  table_->SetDetails(Poll(hidden).new_client, {}, false);
  ASSERT_THAT(table_->Processes(), SizeIs(1));
  EXPECT_TRUE(table_->Processes()[0].id.starts_with("0-"));
  for (int i = 0; i < 40; ++i) {
    now_ns_ += kSecondNs;
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
    now_ns_ += kMillisecondNs;
    auto bytes = seed;
    for (uint32_t change = 1 + random() % 4; change > 0; --change)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    if (random() % 2 == 0) bytes.resize(random() % 120);
    Handle(bytes, From(static_cast<int32_t>(100 + random() % 50), 8),
           static_cast<int64_t>(random() % 50) * kMillisecondNs);
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
