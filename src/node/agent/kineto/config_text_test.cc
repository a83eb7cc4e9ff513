#include "node/agent/kineto/config_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

using control::CaptureWindow;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ConfigRequest Duration() {
  ConfigRequest request;
  request.log_file = "/tmp/lockstep/a1/n1_rank3.json";
  request.trace_id = "a1-3";
  return request;
}

ConfigRequest Iterations() {
  ConfigRequest request = Duration();
  request.window.mode = CaptureWindow::Mode::kIterations;
  request.window.iterations = 5;
  return request;
}

TEST(ConfigTextTest, DurationTextIsThis) {
  ConfigRequest request = Duration();
  request.window.start_unix_ns = 1'700'000'000'123'000'000;
  request.options.record_shapes = true;
  request.group_id = "g_1";
  const auto text = BuildConfigText(request);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text,
            "PROFILE_START_TIME=1700000000123\n"
            "ACTIVITIES_DURATION_MSECS=500\n"
            "ACTIVITIES_WARMUP_PERIOD_SECS=1\n"
            "ACTIVITIES_LOG_FILE=/tmp/lockstep/a1/n1_rank3.json\n"
            "PROFILE_REPORT_INPUT_SHAPES=true\n"
            "PROFILE_PROFILE_MEMORY=false\n"
            "PROFILE_WITH_STACK=false\n"
            "PROFILE_WITH_FLOPS=false\n"
            "PROFILE_WITH_MODULES=false\n"
            "CLIENT_INTERFACE_ENABLE_OP_INPUTS_COLLECTION=true\n"
            "PYTHON_STACK_TRACE=false\n"
            "REQUEST_TRACE_ID=a1-3\n"
            "REQUEST_GROUP_TRACE_ID=g_1\n");
}

TEST(ConfigTextTest, IterationTextAsksForCountAndRoundup) {
  ConfigRequest request = Iterations();
  request.window.roundup = 50;
  request.window.start_iteration = 2000;
  request.window.warmup_iterations = 2;
  const auto text = BuildConfigText(request);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("PROFILE_START_ITERATION=2000\nPROFILE_START_ITERATION_ROUNDUP=50\n"
                               "ACTIVITIES_ITERATIONS=5\nACTIVITIES_WARMUP_ITERATIONS=2\n"));
  EXPECT_THAT(*text, Not(HasSubstr("DURATION")));
}

TEST(ConfigTextTest, WarmupIsLongerWhereADeviceIsTraced) {
  ConfigRequest request = Duration();
  request.device_traced = true;
  EXPECT_THAT(*BuildConfigText(request), HasSubstr("ACTIVITIES_WARMUP_PERIOD_SECS=5\n"));
  request.window.warmup_ns = 0;
  EXPECT_THAT(*BuildConfigText(request), HasSubstr("ACTIVITIES_WARMUP_PERIOD_SECS=0\n"));
}

TEST(ConfigTextTest, EveryLineHasOneEqualsAndNoComment) {
  ConfigRequest request = Iterations();
  request.options = {.record_shapes = true,
                     .memory = true,
                     .stacks = true,
                     .flops = true,
                     .modules = true,
                     .activities = {"cpu_op", "kernel"}};
  const std::string text = *BuildConfigText(request);
  EXPECT_EQ(text.find('#'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '='), std::count(text.begin(), text.end(), '\n'));
  EXPECT_TRUE(text.ends_with('\n'));
}

TEST(ConfigTextTest, ValuesOutOfRangeAreRefused) {
  const auto refused = [](auto change) {
    ConfigRequest request = Duration();
    change(request);
    const auto text = BuildConfigText(request);
    return !text && text.error().code == ErrorCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](ConfigRequest& request) { request.window.duration_ns = 0; }));
  EXPECT_TRUE(refused([](ConfigRequest& request) { request.window.duration_ns = 1'500'000; }));
  EXPECT_TRUE(refused([](ConfigRequest& request) { request.window.duration_ns = 3601'000'000'000; }));
  EXPECT_TRUE(refused([](ConfigRequest& request) { request.window.warmup_ns = 1'500'000'000; }));
  EXPECT_TRUE(refused([](ConfigRequest& request) { request.window.warmup_ns = -1'000'000'000; }));
  EXPECT_TRUE(refused([](ConfigRequest& request) { request.window.start_unix_ns = 1; }));
  EXPECT_TRUE(refused([](ConfigRequest& request) { request.window.start_unix_ns = -1'000'000; }));
  EXPECT_TRUE(refused([](ConfigRequest& request) { request.trace_id = "a b"; }));
  EXPECT_TRUE(refused([](ConfigRequest& request) { request.trace_id = "a\nACTIVITIES_LOG_FILE=/etc/passwd"; }));
  EXPECT_TRUE(refused([](ConfigRequest& request) { request.group_id = "g="; }));
  EXPECT_TRUE(refused([](ConfigRequest& request) { request.log_file = "/tmp/x"; }));
  for (const int32_t iterations : {0, -1, 100'001}) {
    ConfigRequest request = Iterations();
    request.window.iterations = iterations;
    EXPECT_FALSE(BuildConfigText(request)) << iterations;
  }
  ConfigRequest request = Iterations();
  request.window.roundup = 0;
  EXPECT_FALSE(BuildConfigText(request));
}

TEST(ConfigTextTest, LogFileRulesAreThoseOfKineto) {
  for (const char* good : {"/tmp/a.json", "/tmp/lockstep/x-1_2/n001.example+a@b:3,4.json", "/tmp/a.pt.trace.json"})
    EXPECT_TRUE(CheckLogFile(good)) << good;
  for (const char* bad : {"",
                          "a.json",
                          "/tmp/a",
                          "/tmp/a.json.gz",
                          "/tmp/a.json.json",
                          "/tmp/x.json/a.json",
                          "/tmp/a=b.json",
                          "/tmp/a#b.json",
                          "/tmp/a b.json",
                          "/tmp/a\n.json",
                          "/tmp/../etc/a.json",
                          "/tmp/./a.json",
                          "/tmp//a.json",
                          "/tmp/.json",
                          "/tmp/a\".json",
                          "/tmp/$HOME.json",
                          "/tmp/a.json/",
                          "/tmp/\xc3\xa4.json",
                          "/tmp/..",
                          "/.."})
    EXPECT_FALSE(CheckLogFile(bad)) << bad;
  EXPECT_FALSE(CheckLogFile("/" + std::string(1000, 'a') + ".json"));
}

TEST(ConfigTextTest, FinalPathHasThePidBeforeTheEnding) {
  EXPECT_EQ(FinalTracePath("/tmp/a/x.json", 12), "/tmp/a/x_12.json");
  EXPECT_EQ(FinalTracePath("/tmp/a/x.pt.trace.json", 12), "/tmp/a/x_12.pt.trace.json");
  EXPECT_EQ(FinalTracePath("/tmp/x.json/y.json", 12), "/tmp/x_12.json/y.json");
  EXPECT_EQ(FinalTracePath("/tmp/x.json.gz", 12), "/tmp/x_12.json.gz");
  EXPECT_EQ(FinalTracePath("/tmp/x", 12), "/tmp/x");
}

TEST(ConfigTextTest, ActivitiesAreThoseThatTheVersionKnows) {
  EXPECT_TRUE(KnowsActivity("", "cpu_op"));
  EXPECT_TRUE(KnowsActivity("2.0.1", "kernel"));
  EXPECT_FALSE(KnowsActivity("", "cuda_driver"));
  EXPECT_FALSE(KnowsActivity("2.0.1", "cuda_driver"));
  EXPECT_TRUE(KnowsActivity("2.13.0+cpu", "cuda_driver"));
  EXPECT_FALSE(KnowsActivity("2.9.1+cu128", "mtia_counters"));
  EXPECT_TRUE(KnowsActivity("3.0.0a0", "mtia_counters"));
  EXPECT_FALSE(KnowsActivity("2.13.0", "CPU_OP"));
  EXPECT_FALSE(KnowsActivity("2.13.0", "cpu_op,kernel"));
  ConfigRequest request = Duration();
  request.options.activities = {"cpu_op", "cuda_sync"};
  EXPECT_FALSE(BuildConfigText(request));
  request.torch_version = "2.6.0+cu124";
  EXPECT_THAT(*BuildConfigText(request), HasSubstr("ACTIVITY_TYPES=cpu_op,cuda_sync\n"));
}

TEST(ConfigReaderTest, OwnTextsReadBack) {
  for (ConfigRequest request : {Duration(), Iterations()}) {
    request.options.flops = true;
    request.options.activities = {"cpu_op"};
    const auto read = ReadConfigText(*BuildConfigText(request));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->log_file, request.log_file);
    EXPECT_EQ(read->window.mode, request.window.mode);
    EXPECT_EQ(read->window.duration_ns, request.window.duration_ns);
    EXPECT_EQ(read->window.iterations, request.window.iterations);
    EXPECT_EQ(read->window.roundup, request.window.roundup);
    EXPECT_EQ(read->window.start_iteration, request.window.start_iteration);
    EXPECT_TRUE(read->options.flops);
    EXPECT_THAT(read->options.activities, ElementsAre("cpu_op"));
    EXPECT_THAT(read->ignored_keys, ElementsAre());
  }
}

TEST(ConfigReaderTest, DynoDurationRequestIsRead) {
  const auto read = ReadConfigText(
      "PROFILE_START_TIME=0\nACTIVITIES_LOG_FILE=/tmp/trace.json\nACTIVITIES_DURATION_MSECS=750\n"
      "PROFILE_REPORT_INPUT_SHAPES=true\nPROFILE_PROFILE_MEMORY=false\nPROFILE_WITH_STACK=true\n"
      "PROFILE_WITH_FLOPS=false\nPROFILE_WITH_MODULES=false");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->window.mode, CaptureWindow::Mode::kDuration);
  EXPECT_EQ(read->window.duration_ns, 750'000'000);
  EXPECT_FALSE(read->window.start_unix_ns);
  EXPECT_EQ(read->log_file, "/tmp/trace.json");
  EXPECT_TRUE(read->options.record_shapes);
  EXPECT_TRUE(read->options.stacks);
  EXPECT_FALSE(read->options.memory);
}

TEST(ConfigReaderTest, DynoIterationRequestIsRead) {
  const auto read = ReadConfigText(
      "ACTIVITIES_LOG_FILE=/tmp/trace.json\nPROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1000\n"
      "ACTIVITIES_ITERATIONS=3\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->window.mode, CaptureWindow::Mode::kIterations);
  EXPECT_EQ(read->window.iterations, 3);
  EXPECT_EQ(read->window.roundup, 1000);
  EXPECT_FALSE(read->window.start_iteration);
}

TEST(ConfigReaderTest, CommentsBlanksAndLaterLinesFollowKineto) {
  const auto read = ReadConfigText(
      "# a comment\n\n  ACTIVITIES_DURATION_MSECS =\t100  # ms\nACTIVITIES_DURATION_SECS=2\n"
      "PROFILE_WITH_STACK = Yes\nACTIVITIES_LOG_FILE=/tmp/a#b.json\nNEW_KEY=1\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->window.duration_ns, 2'000'000'000);
  EXPECT_TRUE(read->options.stacks);
  EXPECT_EQ(read->log_file, "/tmp/a");
  EXPECT_THAT(read->ignored_keys, ElementsAre("NEW_KEY"));
}

TEST(ConfigReaderTest, WhatKinetoWouldDropIsRefusedWithItsLine) {
  for (const char* text : {"\nno equals\n", "\nACTIVITIES_LOG_FILE=/tmp/a=b.json\n", "\nACTIVITIES_DURATION_MSECS=-1\n",
                           "\nACTIVITIES_DURATION_MSECS=99999999999\n", "\nPROFILE_WITH_STACK=maybe\n",
                           "\nACTIVITY_TYPES=cpu_op,nonsense\n", "\nPROFILE_START_TIME=1e9\n",
                           "\nPROFILE_START_TIME=99999999999999999999\n"}) {
    const auto read = ReadConfigText(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(read.error().message, HasSubstr("line 2")) << text;
  }
  EXPECT_EQ(ReadConfigText("PROFILE_MEMORY=true\n").error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(ReadConfigText("PROFILE_MEMORY=false\nPROFILE_MEMORY_DURATION_MSECS=10\n"));
  EXPECT_EQ(ReadConfigText(std::string(20'000, '\n')).error().code, ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace lockstep::agent
