#include <gmock/gmock.h>

#include "node/control/api/history.h"

namespace lockstep::control {
namespace {

using testing::HasSubstr;

constexpr std::string_view kHistory =
    R"({"host":"n1","now_unix_ns":30,"is_cut":true,"times_unix_ns":[10,20],"series":[)"
    R"({"kind":"rank","labels":{"job_id":"4711","rank":"0"},"figures":{"steps":[1.0,2.5],"tokens":[null,3.0]}},)"
    R"({"kind":"gpu","labels":{"gpu":"0"},"figures":{}}],)"
    R"("events":[{"unix_ns":15,"kind":"gpu_xid","labels":{"gpu":"0"},"count":2.0}]})";

TEST(HistoryJsonTest, EveryFieldGoesThroughUnchanged) {
  const Result<History> history = ReadHistory(kHistory);
  ASSERT_TRUE(history) << history.error().ToString();
  EXPECT_EQ(ToJson(*history), kHistory);
  EXPECT_EQ(history->series[0].figures.at("tokens")[0], std::nullopt);
  EXPECT_EQ(history->series[0].figures.at("tokens")[1], 3);
}

TEST(HistoryJsonTest, ANewerDaemonsKindsArePassedOver) {
  const Result<History> history =
      ReadHistory(R"({"times_unix_ns":[1],"series":[{"kind":"toaster"},{"kind":"job","new":1}],"more":{}})");
  ASSERT_TRUE(history);
  ASSERT_EQ(history->series.size(), 1u);
  EXPECT_EQ(history->series[0].kind, HistoryKind::kJob);
}

TEST(HistoryJsonTest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> texts[] = {
      {"[]", "document is not an object"},
      {R"({"times_unix_ns":[2,1]})", "times_unix_ns[1] is not after"},
      {R"({"times_unix_ns":[1.5]})", "times_unix_ns[0] is not a time"},
      {R"({"times_unix_ns":[-1]})", "times_unix_ns[0] is not a time"},
      {R"({"series":[{"kind":"rank","figures":{"a":[1]}}]})", "figures.a is not as long"},
      {R"({"times_unix_ns":[1],"series":[{"kind":"rank","figures":{"a":["x"]}}]})",
       "figures.a holds what is not a number"},
      {R"({"times_unix_ns":[1],"series":[{"kind":"rank","figures":{"a":3}}]})", "figures.a is not a list"},
      {R"({"series":[{"kind":"rank","labels":{"a":3}}]})", "series[0].labels"},
      {R"({"events":[{"unix_ns":-5}]})", "events[0].unix_ns"},
  };
  for (const auto& [text, said] : texts) {
    const Result<History> history = ReadHistory(text);
    ASSERT_FALSE(history) << text;
    EXPECT_THAT(history.error().message, HasSubstr(said)) << text;
  }
}

TEST(HistoryJsonTest, AnAnswerIsBounded) {
  std::string text = R"({"times_unix_ns":[)";
  for (int i = 1; i <= 2000; ++i) text += std::to_string(i) + (i < 2000 ? "," : "");
  text += R"(],"series":[)";
  std::string values = "[0";
  for (int i = 1; i < 2000; ++i) values += ",0";
  for (int i = 0; i < 400; ++i) text += (i > 0 ? "," : "") + (R"({"kind":"rank","figures":{"a":)" + values + "]}}");
  const Result<History> history = ReadHistory(text + "]}");
  ASSERT_FALSE(history);
  EXPECT_EQ(history.error().code, ErrorCode::kLimitExceeded);
}

TEST(HistoryQueryTest, APathIsReadAsItWasWritten) {
  const HistoryQuery query = {.job_id = "12 3&ä=%", .since_unix_ns = 5, .until_unix_ns = 7, .points = 100};
  const std::string path = HistoryPath(query);
  EXPECT_EQ(path, "/api/v1/history?job=12%203%26%C3%A4%3D%25&since_ns=5&until_ns=7&points=100");
  const Result<HistoryQuery> read = ReadHistoryQuery(path.substr(path.find('?') + 1));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->job_id, query.job_id);
  EXPECT_EQ(read->since_unix_ns, query.since_unix_ns);
  EXPECT_EQ(read->until_unix_ns, query.until_unix_ns);
  EXPECT_EQ(read->points, query.points);
  EXPECT_EQ(HistoryPath({}), "/api/v1/history");
  EXPECT_TRUE(ReadHistoryQuery(""));
}

TEST(HistoryQueryTest, BadOnesAreRefused) {
  for (const char* text : {"points=0", "points=2001", "points=x", "points=", "since_ns=-1",
                           "since_ns=99999999999999999999", "job=%4", "job=%zz", "what=1", "since_ns"}) {
    const Result<HistoryQuery> query = ReadHistoryQuery(text);
    ASSERT_FALSE(query) << text;
    EXPECT_EQ(query.error().code, ErrorCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace lockstep::control
