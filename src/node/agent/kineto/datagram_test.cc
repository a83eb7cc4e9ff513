#include "node/agent/kineto/datagram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace lockstep::agent {
namespace {

using ::testing::ElementsAre;

std::vector<std::byte> Hex(std::string_view text) {
  std::vector<std::byte> bytes;
  std::string digits;
  for (const char c : text) {
    if (c == ' ' || c == '\n') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<std::byte>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

constexpr std::string_view kReqTag =
    "72 65 71 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00";
constexpr std::string_view kCtxtTag =
    "63 74 78 74 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00";

std::vector<std::byte> Request(std::string_view size, std::string_view payload) {
  return Hex(std::string(size) + std::string(kReqTag) + std::string(payload));
}

TEST(DatagramTest, PollOfOneProcessIsReadByteByByte) {
  const auto bytes =
      Request("14 00 00 00 00 00 00 00", "03 00 00 00  01 00 00 00  63 00 00 00 00 00 00 00  d2 04 00 00");
  ASSERT_EQ(bytes.size(), 60u);
  const Message message = ReadDatagram(bytes);
  ASSERT_EQ(message.kind, Message::Kind::kPoll);
  EXPECT_EQ(message.poll.mask, 3);
  EXPECT_EQ(message.poll.job_id, 99);
  EXPECT_THAT(message.poll.pids, ElementsAre(1234));
  EXPECT_EQ(WritePoll(message.poll), bytes);
}

TEST(DatagramTest, PollOfFiveProcessesHas76Bytes) {
  const auto bytes = Request("24 00 00 00 00 00 00 00",
                             "02 00 00 00  05 00 00 00  00 f2 05 2a 01 00 00 00"
                             "05 00 00 00 04 00 00 00 03 00 00 00 02 00 00 00 01 00 00 00");
  ASSERT_EQ(bytes.size(), 76u);
  const Message message = ReadDatagram(bytes);
  ASSERT_EQ(message.kind, Message::Kind::kPoll);
  EXPECT_EQ(message.poll.job_id, 5'000'000'000);
  EXPECT_TRUE(message.poll.free());
  EXPECT_THAT(message.poll.pids, ElementsAre(5, 4, 3, 2, 1));
}

TEST(DatagramTest, ElevenProcessesAreRead) {
  PollRequest request{.mask = 2, .job_id = 0, .pids = {}};
  for (int32_t pid = 11; pid > 0; --pid) request.pids.push_back(pid);
  const auto bytes = WritePoll(request);
  EXPECT_EQ(bytes.size(), 100u);
  EXPECT_EQ(ReadDatagram(bytes).poll.pids, request.pids);
}

TEST(DatagramTest, ContextIsReadByteByByte) {
  const auto bytes =
      Hex("10 00 00 00 00 00 00 00" + std::string(kCtxtTag) + "02 00 00 00  d2 04 00 00  63 00 00 00 00 00 00 00");
  const Message message = ReadDatagram(bytes);
  ASSERT_EQ(message.kind, Message::Kind::kContext);
  EXPECT_EQ(message.context.device_ordinal, 2);
  EXPECT_EQ(message.context.pid, 1234);
  EXPECT_EQ(message.context.job_id, 99);
  EXPECT_EQ(WriteContext(message.context), bytes);
}

TEST(DatagramTest, EmptyReplyIsABareHeader) {
  const auto bytes = WriteMessage(kPollTag, {});
  EXPECT_EQ(bytes, Request("00 00 00 00 00 00 00 00", ""));
}

TEST(DatagramTest, MaskWithoutActivitiesIsBusy) {
  for (const int32_t mask : {0, 1, 4, -3}) EXPECT_FALSE((PollRequest{.mask = mask, .pids = {1}}.free())) << mask;
  for (const int32_t mask : {2, 3, 7}) EXPECT_TRUE((PollRequest{.mask = mask, .pids = {1}}.free())) << mask;
}

TEST(DatagramTest, EveryPrefixOfAPollIsMalformed) {
  const auto bytes = WritePoll({.mask = 3, .job_id = 1, .pids = {7, 6}});
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(ReadDatagram(std::span(bytes).first(size)).kind, Message::Kind::kMalformed) << size;
}

TEST(DatagramTest, LyingSizesAndCountsAreMalformed) {
  const auto good = WritePoll({.mask = 3, .job_id = 1, .pids = {7, 6}});
  for (const uint64_t size : {uint64_t{0}, uint64_t{23}, uint64_t{25}, uint64_t{1} << 40, UINT64_MAX}) {
    auto bytes = good;
    std::memcpy(bytes.data(), &size, sizeof(size));
    EXPECT_EQ(ReadDatagram(bytes).kind, Message::Kind::kMalformed) << size;
  }
  for (const int32_t count : {-1, 0, 1, 3, 1025, INT32_MAX, INT32_MIN}) {
    auto bytes = good;
    std::memcpy(bytes.data() + 44, &count, sizeof(count));
    EXPECT_EQ(ReadDatagram(bytes).kind, Message::Kind::kMalformed) << count;
  }
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_EQ(ReadDatagram(longer).kind, Message::Kind::kMalformed);
}

TEST(DatagramTest, MoreProcessesThanTheLimitAreMalformed) {
  PollRequest request{.mask = 2, .job_id = 0, .pids = std::vector<int32_t>(kMaxPids, 5)};
  EXPECT_EQ(ReadDatagram(WritePoll(request)).kind, Message::Kind::kPoll);
  request.pids.push_back(5);
  EXPECT_EQ(ReadDatagram(WritePoll(request)).kind, Message::Kind::kMalformed);
}

TEST(DatagramTest, ATracersPollHasANoteBehindItsProcesses) {
  const Message message = ReadDatagram(
      WritePoll({.mask = 6, .job_id = 9, .pids = {7, 6}, .is_tracer = true, .note = "abc-0 refused \x1b[2J\xff"}));
  ASSERT_EQ(message.kind, Message::Kind::kPoll);
  EXPECT_TRUE(message.poll.is_tracer);
  EXPECT_EQ(message.poll.mask, PollRequest::kActivities | PollRequest::kSteps);
  EXPECT_THAT(message.poll.pids, testing::ElementsAre(7, 6));
  EXPECT_EQ(message.poll.note, "abc-0 refused ?[2J\xEF\xBF\xBD");
  EXPECT_EQ(ReadDatagram(WritePoll({.pids = {7}, .is_tracer = true})).poll.note, "");
  EXPECT_EQ(ReadDatagram(WritePoll({.pids = {7}, .is_tracer = true, .note = std::string(2049, 'x')})).kind,
            Message::Kind::kMalformed);
  EXPECT_EQ(ReadDatagram(WritePoll({.pids = {7}, .note = "x"})).kind, Message::Kind::kMalformed) << "Kineto has none";
}

TEST(DatagramTest, OtherTagsAreUnknownAndATagWithoutAnEndIsMalformed) {
  EXPECT_EQ(ReadDatagram(WriteMessage("model_status", {})).kind, Message::Kind::kUnknownTag);
  EXPECT_EQ(ReadDatagram(WriteMessage("", {})).kind, Message::Kind::kUnknownTag);
  EXPECT_EQ(ReadDatagram(WriteMessage("reqs", {})).kind, Message::Kind::kUnknownTag);
  auto bytes = WriteMessage("", {});
  std::fill(bytes.begin() + 8, bytes.end(), std::byte{'r'});
  EXPECT_EQ(ReadDatagram(bytes).kind, Message::Kind::kMalformed);
}

TEST(DatagramTest, TenThousandMutatedDatagramsReadOrFailCleanly) {
  std::mt19937 random(20);
  const auto seed_poll = WritePoll({.mask = 3, .job_id = 1, .pids = {7, 6, 5}});
  const auto seed_tracer = WritePoll({.mask = 3, .pids = {7, 6, 5}, .is_tracer = true, .note = "a-0 waits x"});
  const auto seed_context = WriteContext({.device_ordinal = 1, .pid = 7, .job_id = 1});
  for (int round = 0; round < 10'000; ++round) {
    auto bytes = round % 3 == 0 ? seed_poll : round % 3 == 1 ? seed_context : seed_tracer;
    for (uint32_t change = random() % 4; change > 0; --change)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    if (random() % 4 == 0) bytes.resize(random() % 200);
    const Message message = ReadDatagram(bytes);
    if (message.kind == Message::Kind::kPoll) {
      EXPECT_FALSE(message.poll.pids.empty());
      EXPECT_LE(message.poll.pids.size(), kMaxPids);
    }
  }
}

}  // namespace
}  // namespace lockstep::agent
