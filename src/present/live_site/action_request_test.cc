#include "present/live_site/action_request.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::live_site {
namespace {

using Ranks = std::vector<std::pair<int32_t, int32_t>>;

TEST(ActionRequestTest, AnEmptyObjectIsTheUsualCapture) {
  const auto wish = ReadCaptureWish("{}", "123");
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->selector.job_id, "123");
  EXPECT_EQ(wish->window.mode, control::CaptureWindow::Mode::kDuration);
  EXPECT_EQ(wish->window.duration_ns, 500'000'000);
  EXPECT_TRUE(wish->selector.ranks.empty());
}

TEST(ActionRequestTest, AllThatCanBeAskedFor) {
  const auto wish = ReadCaptureWish(R"({"job_id":"j","ranks":[0,7],"iterations":3,"stacks":true,"memory":true,)"
                                    R"("allow_unsafe":true})");
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->job_id, "j");
  EXPECT_EQ(wish->selector.ranks, (Ranks{{0, 0}, {7, 7}}));
  EXPECT_EQ(wish->window.mode, control::CaptureWindow::Mode::kIterations);
  EXPECT_EQ(wish->window.iterations, 3);
  EXPECT_TRUE(wish->options.stacks);
  EXPECT_TRUE(wish->options.memory);
  EXPECT_TRUE(wish->allow_unsafe);
  EXPECT_FALSE(wish->options.record_shapes);
  EXPECT_EQ(ReadCaptureWish(R"({"duration_ms":60000})")->window.duration_ns, 60'000'000'000);
}

TEST(ActionRequestTest, AJobThatIsAProcessIsItsProcess) {
  const auto wish = ReadCaptureWish(R"({"job_id":"pid-4711"})");
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->selector.job_id, "");
  EXPECT_EQ(wish->selector.pids, std::vector<int32_t>{4711});
  EXPECT_EQ(ReadCaptureWish(R"({"job_id":"pid-4711x"})")->selector.job_id, "pid-4711x");
  EXPECT_EQ(ReadCaptureWish(R"({"job_id":"pid--1"})")->selector.job_id, "pid--1");
}

TEST(ActionRequestTest, WhatMakesNoSenseIsRefused) {
  for (const char* json : {"", "[]", "{", "null", R"({"job":"j"})", R"({"iterations":0})", R"({"iterations":1001})",
                           R"({"iterations":"3"})", R"({"duration_ms":0})", R"({"duration_ms":60001})",
                           R"({"iterations":1,"duration_ms":1})", R"({"ranks":[-1]})", R"({"ranks":[1.5]})",
                           R"({"ranks":3})", R"({"ranks":[99999999999]})", R"({"stacks":1})", R"({"job_id":7})"}) {
    EXPECT_FALSE(ReadCaptureWish(json)) << json;
  }
  std::string many = R"({"ranks":[0)";
  for (int i = 0; i < 5000; ++i) many += ",0";
  EXPECT_FALSE(ReadCaptureWish(many + "]}"));
  EXPECT_FALSE(ReadCaptureWish(R"({"job_id":")" + std::string(300, 'x') + "\"}"));
  EXPECT_FALSE(ReadCaptureWish(std::string(60'000, '[')));
}

TEST(ActionRequestTest, EvidenceIsOfOneJob) {
  EXPECT_EQ(*ReadHangWish(R"({"job_id":"j"})"), "j");
  EXPECT_EQ(*ReadHangWish("{}", "123"), "123");
  EXPECT_FALSE(ReadHangWish(R"({"job_id":"j","ranks":[1]})"));
  EXPECT_FALSE(ReadHangWish("[]"));
}

}  // namespace
}  // namespace lockstep::live_site
