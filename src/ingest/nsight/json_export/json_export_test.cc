#include "ingest/nsight/json_export/json_export.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "ingest/bytes/file_source.h"

namespace lockstep::ingest {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr int64_t kFirstPid = (int64_t{1} << 48) + (int64_t{29} << 24);
constexpr int64_t kSecondPid = (int64_t{1} << 48) + (int64_t{30} << 24);

std::vector<TraceContent> Read(const std::string& text) {
  EXPECT_TRUE(StartsNsysJson(std::string_view(text).substr(0, kNsysJsonHeadBytes))) << text.substr(0, 80);
  const auto source = RawMemory(text);
  auto contents = ReadNsysJson(*source, "report.json", {});
  if (!contents) {
    ADD_FAILURE() << contents.error().ToString();
    return std::vector<TraceContent>(1);
  }
  return std::move(*contents);
}

std::vector<std::string> Events(const TraceContent& content, const model::NameTable& names) {
  std::vector<std::string> events;
  for (const model::Track& track : content.trace.tracks) {
    for (size_t i = 0; i < track.events.size(); ++i) {
      events.push_back(fmt::format("{} {}+{} {}", model::CategoryName(track.events.category[i]),
                                   track.events.start_ns[i], track.events.duration_ns[i], names[track.events.name[i]]));
    }
  }
  std::sort(events.begin(), events.end());
  return events;
}

std::vector<std::string> Codes(const TraceContent& content) {
  std::vector<std::string> codes;
  for (const model::LedgerEntry& entry : content.ledger.entries()) codes.push_back(entry.code);
  return codes;
}

std::string Range(int64_t process, int64_t start, int64_t end, const std::string& text) {
  return fmt::format(
      "{{\"Type\":59,\"NvtxEvent\":{{\"Type\":59,\"Timestamp\":\"{}\",\"Text\":\"{}\",\"GlobalTid\":\"{}\","
      "\"EndTimestamp\":\"{}\",\"DomainId\":\"0\",\"NsTime\":true}}}}\n",
      start, text, process + 7, end);
}

std::string Started(int64_t process, int64_t at, int environment) {
  return fmt::format(
      "{{\"Type\":27,\"CommEvent\":{{\"Timestamp\":\"{}\",\"GlobalPid\":\"{}\",\"Args\":[\"train.py\"],\"NsTime\":true,"
      "\"EnvironId\":{}}}}}\n",
      at, process, environment);
}

constexpr const char* kStrings =
    "{\"data\":[\"A=1\\u0000RANK=1\\u0000WORLD_SIZE=2\",\"WORLD_SIZE=2\\u0000RANK=0\",\"gemm(float*)\",\"gemm\","
    "\"cudaLaunchKernel_v7000\",\"A=1\"],\"files\":[]}\n";

TEST(NsysJsonTest, BothLayoutsAreKnownByTheirFirstLineAndPyTorchsTracesAreNeither) {
  EXPECT_TRUE(StartsNsysJson("{\"Type\":27,\"CommEvent\":{"));
  EXPECT_TRUE(StartsNsysJson("{\"data\":[\"[Unknown]\""));
  EXPECT_TRUE(StartsNsysJson("{\"id\":0,\"table\":\"StringIds\",\"value\":\"[Unknown]\"}\n"));
  EXPECT_TRUE(StartsNsysJson("{\"color\":255,\"end\":2,\"start\":1,\"table\":\"NVTX_EVENTS\",\"textId\":38}"));
  EXPECT_FALSE(StartsNsysJson("{\"traceEvents\":[{\"args\":{\"table\":\"StringIds\"}}]}"));
  EXPECT_FALSE(StartsNsysJson("{\"schemaVersion\":1,\n\"table\":\"StringIds\"}"));
  EXPECT_FALSE(StartsNsysJson("{\"step\":3,\"table\":\"losses\"}"));
}

TEST(NsysJsonTest, MessagesOfADeviceBecomeWhatTheTablesDo) {
  const std::string text = fmt::format(
      R"({{"Type":48,"TraceProcessEvent":{{"startNs":"500","endNs":"600","correlationId":745,"eventClass":0,"name":"4","returnValue32":0,"globalTid":"{0}"}}}}
{{"Type":79,"CudaEvent":{{"startNs":"1000","endNs":"3000","correlationId":745,"deviceId":1,"contextId":"1","streamId":"7","eventClass":3,"globalPid":"{1}","kernel":{{"demangledName":"2","shortName":"3","mangledName":"3"}}}}}}
{{"Type":80,"CudaEvent":{{"startNs":"4000","endNs":"4500","correlationId":746,"deviceId":1,"contextId":"1","streamId":"43","globalPid":"{1}","memcpy":{{"sizebytes":"58720256","copyKind":"2","srcKind":2,"dstKind":1,"copyCount":"1"}}}}}}
{{"Type":127,"CudaEvent":{{"startNs":"0","endNs":"0","correlationId":10,"deviceId":1,"contextId":"1","streamId":"43","globalPid":"{1}","cudaEventRecord":{{"eventId":8,"eventSyncId":"205"}}}}}}
{{"Type":106,"CudaEvent":{{"startNs":"5000","endNs":"5100","correlationId":11,"deviceId":0,"contextId":"1","streamId":"47","globalPid":"{1}","sync":{{"eventId":8,"eventSyncId":"205","syncType":"SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT"}}}}}}
{{"Type":41,"SchedEvent":{{"startNs":"1"}}}}
)",
      kFirstPid + 7, kFirstPid);
  const auto contents = Read(text + kStrings);
  ASSERT_EQ(contents.size(), 1u);
  const TraceContent& content = contents[0];
  EXPECT_THAT(Events(content, content.names),
              ElementsAre("kernel 1000+2000 gemm(float*)", "memcpy 4000+500 Memcpy DtoH (Device -> Pinned)",
                          "runtime 500+100 cudaLaunchKernel", "sync 5000+100 Stream Wait Event"));
  ASSERT_EQ(content.trace.synchronisations.size(), 1u);
  EXPECT_EQ(content.trace.synchronisations[0].event_stream, 43);
  EXPECT_EQ(content.trace.synchronisations[0].event_record_correlation, 10u);
  EXPECT_FALSE(content.trace.base_time_known);
  EXPECT_THAT(Codes(content), Contains("nsys_unread_messages"));
}

TEST(NsysJsonTest, TheEnvironmentOfEachProcessSaysItsRank) {
  const std::string events = Range(kFirstPid, 100, 200, "forward") + Range(kSecondPid, 110, 220, "forward");
  // Of a process that became another program its last environment counts; of a launcher none.
  const std::string processes = Started(kFirstPid, 5, 0) + Started(kSecondPid, 7, 1) + Started(kSecondPid, 6, 0) +
                                Started(kFirstPid - (int64_t{1} << 24), 1, 5);
  for (const std::string& text : {kStrings + processes + events, processes + events + kStrings}) {
    const auto contents = Read(text);
    ASSERT_EQ(contents.size(), 2u);
    EXPECT_TRUE(contents[0].has_rank && contents[1].has_rank);
    EXPECT_EQ(contents[0].trace.rank.value, 0);
    EXPECT_EQ(contents[1].trace.rank.value, 1);
    EXPECT_EQ(contents[0].trace.world_size, 2);
    EXPECT_THAT(Events(contents[0], contents[0].names), ElementsAre("user_annotation 110+110 forward"));
    EXPECT_THAT(Codes(contents[0]), Not(Contains("nsys_rank_guess")));
  }
}

TEST(NsysJsonTest, TwoProcessesThatSayTheSameRankAreAGuess) {
  const auto contents = Read(kStrings + Started(kFirstPid, 5, 0) + Started(kSecondPid, 5, 0) +
                             Range(kFirstPid, 1, 2, "a") + Range(kSecondPid, 1, 2, "a"));
  ASSERT_EQ(contents.size(), 2u);
  EXPECT_FALSE(contents[0].has_rank);
  EXPECT_THAT(Codes(contents[0]), Contains("nsys_rank_guess"));
}

/// A range whose text is one of the strings, with a payload's bytes.
std::string RangeWithPayload(int64_t start, int text_id, const std::string& payload_base64) {
  return fmt::format(
      "{{\"Type\":59,\"NvtxEvent\":{{\"Type\":59,\"Timestamp\":\"{}\",\"TextId\":{},\"Payload\":{{\"BinaryData\":[{{"
      "\"SchemaId\":\"16777221\",\"Data\":\"{}\"}}]}},\"GlobalTid\":\"{}\",\"EndTimestamp\":\"{}\",\"DomainId\":\"0\","
      "\"NsTime\":true}}}}\n",
      start, text_id, payload_base64, kFirstPid + 7, start + 10);
}

TEST(NsysJsonTest, BytesOfNcclsPayloadsAreReadThoughNoMessageSaysTheirLayout) {
  // Packed by Python's struct: "<QQi4x" of communicator, bytes, operation; "<Qi4x" of bytes, peer; "<iii" of rank,
  // ranks, device.
  const std::string ranges = RangeWithPayload(100, 0, "iHdmVUQzIhEAABAAAAAAAAAAAAAAAAAA") +
                             RangeWithPayload(200, 1, "ABAAAAAAAAABAAAAAAAAAA==") +
                             RangeWithPayload(50, 2, "AQAAAAIAAAAAAAAA");
  const std::string texts = "{\"data\":[\"ncclAllReduce\",\"ncclSend\",\"ncclCommInitRank\"],\"files\":[]}\n";
  for (const std::string& text : {texts + ranges, ranges + texts}) {
    const auto contents = Read(text);
    ASSERT_EQ(contents.size(), 1u);
    const auto& collectives = contents[0].trace.collectives;
    ASSERT_EQ(collectives.size(), 2u);
    EXPECT_EQ(collectives[0].communicator_id, 0x1122334455667788u);
    EXPECT_EQ(collectives[0].in_elements, 1 << 20);
    EXPECT_EQ(collectives[1].in_elements, 4096);
    EXPECT_EQ(collectives[1].destination_rank, 1);
    EXPECT_EQ(contents[0].trace.rank.value, 1);
    EXPECT_EQ(contents[0].trace.world_size, 2);
    EXPECT_THAT(Codes(contents[0]), Not(Contains("nsys_payload_unknown")));
  }
  const auto damaged = Read(texts + RangeWithPayload(100, 0, "AAAA") + RangeWithPayload(200, 0, "no base64"));
  ASSERT_EQ(damaged.size(), 1u);
  ASSERT_EQ(damaged[0].trace.collectives.size(), 2u);
  EXPECT_EQ(damaged[0].trace.collectives[0].in_elements, std::nullopt);
  EXPECT_THAT(Codes(damaged[0]), Contains("nsys_payload_unknown"));
}

TEST(NsysJsonTest, RowsOfTablesAreThoseTables) {
  const auto contents = Read(fmt::format(
      R"rows({{"id":0,"table":"StringIds","value":"[Unknown]"}}
{{"id":1,"table":"StringIds","value":"gemm(float*)"}}
{{"correlationId":1,"deviceId":0,"end":3000,"globalPid":{},"start":1000,"streamId":7,"table":"CUPTI_ACTIVITY_KIND_KERNEL","demangledName":1}}
{{"domainId":0,"end":90,"eventType":59,"globalTid":{},"start":80,"table":"NVTX_EVENTS","text":"step 1"}}
{{"domainId":0,"end":99,"eventType":59,"globalTid":{},"start":95,"table":"NVTX_EVENTS","textId":1}}
{{"name":"PROCESS_0:ENVIRONMENT_VARIABLE","table":"META_DATA_CAPTURE","value":"RANK=\"3\""}}
{{"name":"Hostname","nameEnum":619,"table":"TARGET_INFO_SYSTEM_ENV","value":"node7"}}
{{"table":"TARGET_INFO_SESSION_START_TIME","utcEpochNs":1700000000000000000}}
)rows",
      kFirstPid, kFirstPid + 7, kFirstPid + 7));
  ASSERT_EQ(contents.size(), 1u);
  const model::RankTrace& trace = contents[0].trace;
  EXPECT_EQ(trace.rank.value, 3);
  EXPECT_EQ(trace.host, "node7");
  EXPECT_TRUE(trace.base_time_known);
  EXPECT_EQ(trace.first_ns, 1'700'000'000'000'000'080);
  EXPECT_EQ(trace.complete_event_count, 3u);
  EXPECT_THAT(Codes(contents[0]), IsEmpty());
}

TEST(NsysJsonTest, WhatIsNoLineOfItIsCounted) {
  const auto contents = Read(kStrings + Range(kFirstPid, 1, 2, "a") + "{\"Type\":59,\"NvtxEv\n[1]\n{\"x\":1}\n\r\n" +
                             R"({"start":1,"table":"bad name"})" + "\n" + R"({"a-b":1,"table":"NVTX_EVENTS"})" + "\n" +
                             Range(kFirstPid, 3, 4, "b").substr(0, 50));
  EXPECT_EQ(contents[0].trace.complete_event_count, 1u);
  uint64_t count = 0;
  for (const model::LedgerEntry& entry : contents[0].ledger.entries()) {
    if (entry.code == "damaged_line") count += entry.count;
  }
  EXPECT_EQ(count, 6u);
}

TEST(NsysJsonTest, NothingOfTheEnvironmentButTheRankComesOut) {
  const auto contents = Read("{\"data\":[\"SECRET_TOKEN=hunter2\\u0000RANK=0\\u0000WORLD_SIZE=2\"]}\n" +
                             Started(kFirstPid, 1, 0) + Range(kFirstPid, 1, 2, "a"));
  const model::NameTable& names = contents[0].names;
  for (uint32_t i = 0; i < names.size(); ++i) EXPECT_THAT(names[NameId{i}], Not(testing::HasSubstr("hunter2")));
  for (const model::LedgerEntry& entry : contents[0].ledger.entries())
    EXPECT_THAT(entry.message, Not(testing::HasSubstr("hunter2")));
}

TEST(NsysJsonTest, AFileWithoutALineOfItIsRefused) {
  const auto source = RawMemory("{\"Type\":3}\n");
  const auto contents = ReadNsysJson(*source, "report.json", {});
  ASSERT_FALSE(contents);
  EXPECT_EQ(contents.error().code, ErrorCode::kCorruptData);
}

}  // namespace
}  // namespace lockstep::ingest
