#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/temporary_folder.h"
#include "present/live_site/alert_watch.h"
#include "present/live_site/own_prometheus.h"
#include "present/live_site/prometheus_alerts.h"
#include "present/live_site/shipped_files.h"

namespace lockstep::live_site {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kAnswer = R"({"status":"success","data":{"alerts":[
  {"labels":{"alertname":"Waits","severity":"critical","job_id":"j"},"annotations":{},"state":"pending","activeAt":"2026-11-23T10:00:00Z","value":"1e+00"},
  {"labels":{"alertname":"LockstepGpuXidHardware","severity":"critical","gpu":"3"},
   "annotations":{"summary":"GPU 3","runbook_url":"docs/runbook/xid.md"},"state":"firing","activeAt":"2026-11-23T10:00:01.5Z","value":"NaN"},
  {"labels":{"alertname":"Mine","severity":"info"},"annotations":{"runbook_url":"https://example.com/mine.md"},"state":"firing","activeAt":"x","value":"7"}]}})";

TEST(PrometheusAlertsTest, FiringComesFirstAndThenTheWorst) {
  const auto alerts = ReadAlerts(kAnswer);
  ASSERT_TRUE(alerts) << alerts.error().ToString();
  ASSERT_EQ(alerts->size(), 3U);
  const Alert& first = alerts->at(0);
  EXPECT_EQ(first.name, "LockstepGpuXidHardware");
  EXPECT_TRUE(first.is_firing);
  EXPECT_EQ(first.severity, "critical");
  EXPECT_EQ(first.summary, "GPU 3");
  EXPECT_EQ(first.runbook, "xid");
  EXPECT_EQ(first.labels, (std::map<std::string, std::string>{{"gpu", "3"}}));
  EXPECT_EQ(first.since_unix_ns, 1'795'428'001'500'000'000);
  EXPECT_EQ(first.value, std::nullopt);
  EXPECT_EQ(alerts->at(1).name, "Mine");
  EXPECT_EQ(alerts->at(1).runbook, "");  // None of ours.
  EXPECT_EQ(alerts->at(1).since_unix_ns, std::nullopt);
  EXPECT_EQ(alerts->at(1).value, 7);
  EXPECT_FALSE(alerts->at(2).is_firing);
}

TEST(PrometheusAlertsTest, WhatIsNoAnswerIsAnError) {
  for (const char* json :
       {"", "[]", "{}", "<html>", R"({"status":"success"})", R"({"status":"success","data":{"alerts":{}}})"}) {
    EXPECT_EQ(ReadAlerts(json).error().code, ErrorCode::kCorruptData) << json;
  }
  EXPECT_THAT(ReadAlerts(R"({"status":"error","error":"too busy"})").error().message, HasSubstr("too busy"));
  EXPECT_EQ(ReadAlerts(R"({"status":"success","data":{"alerts":[3,null,{"labels":[],"state":7}]}})")->size(), 1U);
}

TEST(PrometheusAlertsTest, ManyAreCut) {
  std::string json = R"({"status":"success","data":{"alerts":[{})";
  for (int i = 0; i < 3000; ++i) json += R"(,{"labels":{"alertname":"a"},"state":"firing"})";
  const auto alerts = ReadAlerts(json + "]}}");
  ASSERT_TRUE(alerts);
  EXPECT_EQ(alerts->size(), kMostAlerts);
}

TEST(PrometheusAlertsTest, Timestamps) {
  EXPECT_EQ(ReadTimestamp("1970-01-01T00:00:01Z"), 1'000'000'000);
  EXPECT_EQ(ReadTimestamp("2024-02-29T12:34:56.789012345Z"), 1'709'210'096'789'012'345);
  for (const char* text :
       {"", "Z", "2024-02-30T00:00:00Z", "2024-02-28T24:00:00Z", "2024-02-28T00:00:00", "2024-02-28 00:00:00Z",
        "2024-02-28T00:00:00.Z", "2024-02-28T00:00:00.1234567891Z", "2024-02-28T00:00:00,5Z", "9999-01-01T00:00:00Z"}) {
    EXPECT_EQ(ReadTimestamp(text), std::nullopt) << text;
  }
}

TEST(OwnPrometheusTest, ItsPortIsReadFromTheLogsOfPrometheus2And3) {
  const std::string two =
      "ts=2026-11-23T10:00:00.1Z caller=web.go:561 level=info component=web msg=\"Start listening for connections\" "
      "address=127.0.0.1:0\nts=2026-11-23T10:00:00.2Z caller=tls_config.go:232 level=info component=web "
      "msg=\"Listening "
      "on\" address=127.0.0.1:40123\n";
  EXPECT_EQ(ListeningPort(two), 40123);
  const std::string three =
      "time=2026-11-23T10:00:00.100Z level=INFO source=web.go:654 msg=\"Start listening for connections\" "
      "component=web "
      "address=127.0.0.1:0\ntime=2026-11-23T10:00:00.200Z level=INFO source=tls_config.go:347 msg=\"Listening on\" "
      "component=web address=127.0.0.1:40124\n";
  EXPECT_EQ(ListeningPort(three), 40124);
  for (size_t size = 0; size < three.size(); ++size)
    EXPECT_EQ(ListeningPort({three.data(), size}), std::nullopt) << size;
  EXPECT_EQ(ListeningPort("msg=\"Listening on\" address=127.0.0.1:0\n"), std::nullopt);
  EXPECT_EQ(ListeningPort("msg=\"Listening on\" address=[::]:9090\n"), std::nullopt);
  EXPECT_EQ(ListeningPort("msg=\"Listening on\" address=127.0.0.1:99999\n"), std::nullopt);
}

TEST(PrometheusUrlTest, PlacesAndPaths) {
  const auto at = ReadPrometheusUrl("http://127.0.0.1:9090/");
  ASSERT_TRUE(at);
  EXPECT_EQ(at->endpoint.address, "127.0.0.1");
  EXPECT_EQ(at->endpoint.port, 9090);
  EXPECT_EQ(at->path, "");
  EXPECT_FALSE(at->endpoint.tls);
  const auto below = ReadPrometheusUrl("https://host/prometheus/");
  ASSERT_TRUE(below);
  EXPECT_TRUE(below->endpoint.tls);
  EXPECT_EQ(below->endpoint.port, 443);
  EXPECT_EQ(below->path, "/prometheus");
  EXPECT_EQ(ReadPrometheusUrl("http://[::1]:9090")->endpoint.address, "::1");
  for (const char* url : {"", "host:9090", "ftp://host", "http://", "http://user:pass@host", "http://host:0",
                          "http://host:x", "http://host/?a=b", "http://host/a b"}) {
    EXPECT_FALSE(ReadPrometheusUrl(url)) << url;
  }
}

TEST(PrometheusConfigTest, NodesWithTheirTlsAndToken) {
  PrometheusSetup setup;
  control::Endpoint node;
  node.host = "n1";
  node.address = "10.0.0.1";
  node.port = 9000;
  node.tls = true;
  node.authority_file = "/ca.pem";
  node.token_file = "/token\"'\n";
  setup.nodes = {node};
  setup.interval_ns = 2'500'000'000;
  const auto config = PrometheusConfig(setup, {"/r.yml"});
  ASSERT_TRUE(config);
  EXPECT_THAT(*config, HasSubstr(R"("scrape_interval":"2500ms")"));
  EXPECT_THAT(*config, HasSubstr(R"("rule_files":["/r.yml"])"));
  EXPECT_THAT(
      *config,
      HasSubstr(
          R"("scheme":"https","authorization":{"credentials_file":"/token\"'\n"},"tls_config":{"ca_file":"/ca.pem"})"));
  EXPECT_THAT(*config, HasSubstr(R"("targets":["10.0.0.1:9000"])"));
  setup.nodes[0].address = "::1";
  EXPECT_THAT(*PrometheusConfig(setup, {}), HasSubstr(R"(["[::1]:9000"])"));
}

TEST(PrometheusConfigTest, WhatPrometheusCannotReachIsRefused) {
  PrometheusSetup setup;
  control::Endpoint node;
  node.host = "n1";
  node.unix_path = "/run/lockstep/lockstepd.sock";
  setup.nodes = {node};
  const auto socket = PrometheusConfig(setup, {});
  EXPECT_EQ(socket.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(socket.error().message, HasSubstr("--host localhost"));
  setup.nodes[0].unix_path = "";
  setup.nodes[0].tunnel = {"ssh", "n1"};
  EXPECT_THAT(PrometheusConfig(setup, {}).error().message, HasSubstr("leave --with-prometheus out"));
}

TEST(ShippedFilesTest, RulesAndPagesArePartOfTheProgram) {
  EXPECT_THAT(std::string(ShippedFile("lockstep.rules.yml").value()), HasSubstr("lockstep-recording"));
  EXPECT_THAT(std::string(ShippedFile("lockstep.alerts.yml").value()), HasSubstr("LockstepRankDown"));
  EXPECT_TRUE(ShippedFile("xid.md"));
  EXPECT_FALSE(ShippedFile("../xid.md"));
  EXPECT_FALSE(ShippedFile(""));
}

bool Pause() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return false;
}

TEST(OwnPrometheusTest, OneThatIsNotWaitedForLeavesNothing) {
  const TemporaryFolder programs;
  const TemporaryFolder temporary;
  const std::string before = std::filesystem::temp_directory_path().string();
  PrometheusSetup setup;
  setup.program = programs.File("prometheus");
  {
    std::ofstream script(setup.program);
    script << "#!/bin/sh\nexec sleep 1000\n";
  }
  std::filesystem::permissions(setup.program, std::filesystem::perms::owner_all);
  ::setenv("TMPDIR", temporary.path().c_str(), 1);
  bool had_folder = false;
  const auto started = OwnPrometheus::Start(setup, [&] {
    had_folder = !std::filesystem::is_empty(temporary.path());
    return true;
  });
  ::setenv("TMPDIR", before.c_str(), 1);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(had_folder);
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
}

TEST(OwnPrometheusTest, OneThatIsNotThereSaysWhatToInstall) {
  PrometheusSetup setup;
  setup.program = "no-such-prometheus";
  const auto started = OwnPrometheus::Start(setup, Pause);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(started.error().message, HasSubstr("apt-get install prometheus"));
}

TEST(OwnPrometheusTest, OneThatEndsAtOnceSaysWhy) {
  PrometheusSetup setup;
  setup.program = "false";
  const auto started = OwnPrometheus::Start(setup, Pause);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("ended at once"));
}

}  // namespace
}  // namespace lockstep::live_site
