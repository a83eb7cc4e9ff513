#include "node/agent/sensors/sensor_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

namespace lockstep::agent {
namespace {

using namespace std::chrono_literals;

const MetricSpecs kOneSpec = {{"lockstep_test_total", "counter", "who", "Counted."}};

class FunctionSensor final : public Sensor {
 public:
  FunctionSensor(const char* name, std::function<Result<Reading>()> look, std::chrono::milliseconds deadline,
                 std::chrono::milliseconds period = 5ms)
      : name_(name), look_(std::move(look)), deadline_(deadline), period_(period) {}
  const char* name() const override { return name_; }
  std::chrono::milliseconds period() const override { return period_; }
  std::chrono::milliseconds deadline() const override { return deadline_; }
  Result<Reading> Look() override { return look_(); }

 private:
  const char* name_;
  std::function<Result<Reading>()> look_;
  std::chrono::milliseconds deadline_;
  std::chrono::milliseconds period_;
};

Reading Counted(const char* who, double value) {
  MetricFamilies families(kOneSpec);
  families.Add("lockstep_test_total", {{"who", who}}, value);
  return {true, families.Take()};
}

template <typename... Sensors>
std::vector<std::unique_ptr<Sensor>> All(Sensors... sensors) {
  std::vector<std::unique_ptr<Sensor>> all;
  (all.push_back(std::move(sensors)), ...);
  return all;
}

/// One whose looks may last for as long as a busy machine holds their thread up, unless a deadline is given.
std::unique_ptr<Sensor> Make(const char* name, std::function<Result<Reading>()> look,
                             std::chrono::milliseconds deadline = 1min) {
  return std::make_unique<FunctionSensor>(name, std::move(look), deadline);
}

/// Value of `name` where a label is `label`; nullopt: absent.
std::optional<double> ValueOf(const std::vector<prometheus::MetricFamily>& families, const std::string& name,
                              const std::string& label) {
  for (const auto& family : families) {
    if (family.name != name) continue;
    for (const auto& metric : family.metric) {
      if (metric.label.at(0).value != label) continue;
      return family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
    }
  }
  return std::nullopt;
}

bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 2000 && !holds(); ++i) std::this_thread::sleep_for(5ms);
  return holds();
}

TEST(SensorBoardTest, ReadingsOfOneMetricAreOneFamily) {
  SensorBoard board(All(Make("a", [] { return Counted("a", 1); }), Make("b", [] { return Counted("b", 2); })));
  EXPECT_TRUE(Eventually([&] {
    const auto families = board.Collect();
    const auto count = std::count_if(families.begin(), families.end(),
                                     [](const auto& family) { return family.name == "lockstep_test_total"; });
    return count == 1 && ValueOf(families, "lockstep_test_total", "a") == 1.0 &&
           ValueOf(families, "lockstep_test_total", "b") == 2.0;
  }));
  EXPECT_EQ(ValueOf(board.Collect(), "lockstep_collector_success", "a"), 1.0);
}

TEST(SensorBoardTest, ASensorThatFailsOrThrowsTakesNoOtherWithIt) {
  std::atomic<int> told{0};
  SensorBoard board(All(Make("errs",
                             []() -> Result<Reading> {
                               return Error{ErrorCode::kIo, "no such thing"};
                             }),
                        Make("throws", []() -> Result<Reading> { throw std::runtime_error("thrown"); }),
                        Make("fine", [] { return Counted("fine", 3); })),
                    [&](const std::string&) { ++told; });
  EXPECT_TRUE(Eventually([&] { return ValueOf(board.Collect(), "lockstep_collector_success", "throws").has_value(); }));
  EXPECT_TRUE(Eventually([&] { return ValueOf(board.Collect(), "lockstep_test_total", "fine") == 3.0; }));
  EXPECT_TRUE(Eventually([&] { return ValueOf(board.Collect(), "lockstep_collector_success", "errs") == 0.0; }));
  EXPECT_EQ(ValueOf(board.Collect(), "lockstep_collector_success", "throws"), 0.0);
  EXPECT_TRUE(Eventually([&] { return told == 2; }));
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(told, 2);  // Each says it once, however often it fails.
}

TEST(SensorBoardTest, OneThatHangsIsSaidToAndWhatItSawIsNotTold) {
  std::atomic<int> looks{0};
  std::atomic<bool> release{false};
  SensorBoard board(All(Make(
                            "hangs",
                            [&] {
                              if (++looks > 1) {
                                while (!release) std::this_thread::sleep_for(1ms);
                              }
                              return Counted("hangs", 4);
                            },
                            50ms),
                        Make("fine", [] { return Counted("fine", 3); })));
  EXPECT_TRUE(Eventually([&] { return looks > 1 && !ValueOf(board.Collect(), "lockstep_test_total", "hangs"); }));
  EXPECT_TRUE(Eventually([&] { return ValueOf(board.Collect(), "lockstep_test_total", "fine") == 3.0; }));
  const auto families = board.Collect();  // One that waited for it would not end: it is released below.
  EXPECT_EQ(ValueOf(families, "lockstep_collector_success", "hangs"), 0.0);
  EXPECT_EQ(ValueOf(families, "lockstep_test_total", "hangs"), std::nullopt);
  EXPECT_EQ(ValueOf(families, "lockstep_test_total", "fine"), 3.0);
  EXPECT_GT(ValueOf(families, "lockstep_collector_duration_seconds", "hangs"), 0.05);
  release = true;
  EXPECT_TRUE(Eventually([&] { return ValueOf(board.Collect(), "lockstep_test_total", "hangs") == 4.0; }));
}

TEST(SensorBoardTest, ASensorLooksBeforeItsTimeWhereSomebodyWaitsForIt) {
  std::atomic<int> looks{0};
  const auto look = [&] { return Counted("slow", ++looks); };
  SensorBoard board(All(std::make_unique<FunctionSensor>("slow", look, 1min, 1h)));
  EXPECT_TRUE(Eventually([&] { return looks == 1; }));
  EXPECT_TRUE(Eventually([&] {
    board.LookNow("slow", 1min);  // What it saw a moment ago is new enough.
    return looks == 2;
  }));
  EXPECT_EQ(ValueOf(board.Collect(), "lockstep_test_total", "slow"), 2.0);
  board.LookNow("no such sensor", 1min);
}

TEST(SensorBoardTest, ASensorThatHangsIsNotWaitedForLongerThanAsked) {
  std::atomic<bool> release{false};
  SensorBoard board(All(Make("hangs", [&] {
    while (!release) std::this_thread::sleep_for(1ms);
    return Counted("hangs", 1);
  })));
  board.LookNow("hangs", 1ms);
  release = true;
}

TEST(SensorBoardTest, WhatIsNotThereSaysSo) {
  SensorBoard board(All(Make("absent", [] { return Reading{false, {}}; })));
  EXPECT_TRUE(Eventually([&] { return ValueOf(board.Collect(), "lockstep_collector_present", "absent") == 0.0; }));
  EXPECT_EQ(ValueOf(board.Collect(), "lockstep_collector_success", "absent"), 1.0);
}

}  // namespace
}  // namespace lockstep::agent
