#include "node/agent/dynolog/rpc_message.h"

#include <gmock/gmock.h>

#include <string>

namespace lockstep::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RpcMessageTest, ATraceRequestAsDynoWritesItIsRead) {
  // What `dyno gputrace --log-file /tmp/t.json` sends: the text with its newlines escaped, pids pasted in.
  const RpcReading reading = ReadRpcRequest(R"(
{
    "fn": "setKinetOnDemandRequest",
    "config": "PROFILE_START_TIME=0\nACTIVITIES_LOG_FILE=/tmp/t.json\nACTIVITIES_DURATION_MSECS=500",
    "job_id": 0,
    "pids": [0],
    "process_limit": 3
})");
  ASSERT_TRUE(reading.request);
  EXPECT_EQ(reading.request->function, RpcRequest::Function::kTrace);
  EXPECT_EQ(reading.request->config,
            "PROFILE_START_TIME=0\nACTIVITIES_LOG_FILE=/tmp/t.json\nACTIVITIES_DURATION_MSECS=500");
  EXPECT_THAT(reading.request->pids, ElementsAre(0));
  EXPECT_EQ(reading.request->process_limit, 3);
}

TEST(RpcMessageTest, LimitAndJobHaveDynologsDefaultsAndSixtyFourBits) {
  const RpcReading reading =
      ReadRpcRequest(R"({"fn":"setKinetOnDemandRequest","config":"","pids":[],"job_id":5000000000,"more":{"a":[1]}})");
  ASSERT_TRUE(reading.request);
  EXPECT_EQ(reading.request->job_id, 5'000'000'000);
  EXPECT_EQ(reading.request->process_limit, 1000);
}

TEST(RpcMessageTest, AMissingFieldIsAnsweredFailed) {
  EXPECT_EQ(ReadRpcRequest(R"({"fn":"setKinetOnDemandRequest","pids":[0]})").refusal, R"({"status":"failed"})");
  EXPECT_EQ(ReadRpcRequest(R"({"fn":"setKinetOnDemandRequest","config":""})").refusal, R"({"status":"failed"})");
  EXPECT_EQ(ReadRpcRequest(R"({"fn":"dcgmProfPause"})").refusal, R"({"status":"failed"})");
}

TEST(RpcMessageTest, AWrongTypeIsAnsweredInWords) {
  for (const char* text : {R"({"fn":"setKinetOnDemandRequest","config":1,"pids":[0]})",
                           R"({"fn":"setKinetOnDemandRequest","config":"","pids":"0"})",
                           R"({"fn":"setKinetOnDemandRequest","config":"","pids":["0"]})",
                           R"({"fn":"setKinetOnDemandRequest","config":"","pids":[0],"job_id":"1"})",
                           R"({"fn":"setKinetOnDemandRequest","config":"","pids":[0],"process_limit":1.5})",
                           R"({"fn":"dcgmProfPause","duration_s":"x"})"}) {  // The last ends a Dynolog.
    const RpcReading reading = ReadRpcRequest(text);
    EXPECT_FALSE(reading.request) << text;
    EXPECT_THAT(reading.refusal, HasSubstr(R"({"status":"failed with exception = )")) << text;
  }
}

TEST(RpcMessageTest, WhatIsNoRequestGetsNoAnswer) {
  for (const std::string& text : {std::string(), std::string("{"), std::string("[]"), std::string(R"({"fn":1})"),
                                  std::string(R"({"fn":"getHosts"})"), std::string("GET / HTTP/1.1\r\n\r\n"),
                                  std::string(60'000, '['), std::string("{\"fn\":\"get\xff\"}")}) {
    const RpcReading reading = ReadRpcRequest(text);
    EXPECT_FALSE(reading.request);
    EXPECT_EQ(reading.refusal, "");
  }
}

TEST(RpcMessageTest, AnswersAreDynologsBytes) {
  EXPECT_EQ(StatusReply(), R"({"status":1})");
  EXPECT_EQ(VersionReply("0.1.0"), R"({"version":"0.1.0"})");
  EXPECT_EQ(DcgmReply(), R"({"status":false})");
  // As Dynolog's documentation prints it.
  EXPECT_EQ(TraceReplyText({.matched = {1777855}, .triggered = {1777855}}),
            R"({"activityProfilersBusy":0,"activityProfilersTriggered":[1777855],"eventProfilersBusy":0,)"
            R"("eventProfilersTriggered":[],"processesMatched":[1777855]})");
}

TEST(RpcMessageTest, AnErrorStaysOnOneLine) {
  const std::string text =
      TraceReplyText({.matched = {7}, .triggered = {}, .capture_id = "abc", .error = "line\n\"two\""});
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_THAT(text, HasSubstr(R"("captureId":"abc","error":"line\n\"two\"")"));
}

}  // namespace
}  // namespace lockstep::agent
