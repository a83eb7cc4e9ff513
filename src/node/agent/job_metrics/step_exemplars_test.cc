#include "node/agent/job_metrics/step_exemplars.h"

#include <gmock/gmock.h>

#include <string>

#include "base/nanoseconds.h"
#include "base/now.h"

namespace lockstep::agent {
namespace {

using control::Capture;
using control::CaptureState;
using control::TargetState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class StepExemplarsTest : public ::testing::Test {
 protected:
  /// A rank's steps, one behind another from `start_ns` on.
  void Steps(int32_t rank, int64_t start_ns, const std::vector<int64_t>& durations_ns) {
    ingest::span_follow::Followed followed;
    for (const int64_t duration_ns : durations_ns) {
      followed.steps.push_back({.thread_id = 1, .number = number_++, .start_ns = start_ns, .duration_ns = duration_ns});
      start_ns += duration_ns;
    }
    RankMeter meter;
    meter.Take(followed, [](uint32_t) -> const std::string& {
      static const std::string none;
      return none;
    });
    kept_.Take({"4711", rank, {}, rank, 100 + rank, "n1", "ada", "cpu"}, meter);
  }
  static Capture Of(const std::string& id, int32_t rank, int64_t begun_ns, int64_t finished_ns) {
    Capture capture;
    capture.id = id;
    capture.state = CaptureState::kDone;
    control::CaptureTarget& target = capture.targets.emplace_back();
    target.process.pid = 100 + rank;
    target.process.rank = rank;
    target.process.job_id = "4711";
    target.state = TargetState::kDone;
    target.begun_unix_ns = begun_ns;
    target.finished_unix_ns = finished_ns;
    return capture;
  }

  KeptSteps kept_;
  StepExemplars exemplars_;
  int64_t number_ = 0;
};

TEST_F(StepExemplarsTest, ItIsTheMedianOfTheStepsThatWereCaptured) {
  // Warm-up makes the first one slow, and what is outside does not count.
  Steps(3, 10 * kSecondNs, {9 * kSecondNs, 5 * kSecondNs, 2 * kSecondNs, 3 * kSecondNs, 9 * kSecondNs});
  Steps(1, 10 * kSecondNs, {kSecondNs});
  const auto found = exemplars_.Of({Of("newest", 3, 19 * kSecondNs, 30 * kSecondNs)}, kept_);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].family, "lockstep_step_duration_seconds");
  EXPECT_THAT(found[0].series, ElementsAre(Pair("job_id", "4711")));
  EXPECT_THAT(found[0].labels, ElementsAre(Pair("capture", "newest"), Pair("rank", "3")));
  EXPECT_DOUBLE_EQ(found[0].value, 3);
  EXPECT_DOUBLE_EQ(found[0].unix_seconds, 29);
}

TEST_F(StepExemplarsTest, ATimeThatWasSetIsWhatWasCaptured) {
  Steps(3, 10 * kSecondNs, {kSecondNs, 2 * kSecondNs, 4 * kSecondNs});
  Capture capture = Of("timed", 3, 10 * kSecondNs, 30 * kSecondNs);
  capture.spec.window.start_unix_ns = 10 * kSecondNs;
  capture.spec.window.duration_ns = 1500 * kMillisecondNs;
  EXPECT_DOUBLE_EQ(exemplars_.Of({capture}, kept_).at(0).value, 1);
}

TEST_F(StepExemplarsTest, TheNewestCaptureCountsAndIsRememberedAsLongAsItIsThere) {
  Steps(0, 10 * kSecondNs, {kSecondNs, 2 * kSecondNs});
  const Capture older = Of("older", 0, 10 * kSecondNs, 11 * kSecondNs);
  const Capture newer = Of("newer", 0, 11 * kSecondNs, 13 * kSecondNs);
  EXPECT_DOUBLE_EQ(exemplars_.Of({newer, older}, kept_).at(0).value, 2);
  kept_.Forget(100);
  EXPECT_DOUBLE_EQ(exemplars_.Of({newer, older}, kept_).at(0).value, 2);
  EXPECT_DOUBLE_EQ(exemplars_.Of({older}, kept_).at(0).value, 1);
  EXPECT_THAT(exemplars_.Of({}, kept_), IsEmpty());
  EXPECT_THAT(exemplars_.Of({older}, kept_), IsEmpty());
}

TEST_F(StepExemplarsTest, StepsThatAreTakenAfterTheCaptureEndedCount) {
  Capture capture = Of("just_now", 0, 10 * kSecondNs, 12 * kSecondNs);
  capture.finished_unix_ns = UnixNow();
  EXPECT_THAT(exemplars_.Of({capture}, kept_), IsEmpty());
  Steps(0, 10 * kSecondNs, {kSecondNs});
  EXPECT_THAT(exemplars_.Of({capture}, kept_), SizeIs(1));
}

TEST_F(StepExemplarsTest, WithoutATraceThereIsNone) {
  Steps(0, 10 * kSecondNs, {kSecondNs});
  Capture failed = Of("failed", 0, 10 * kSecondNs, 20 * kSecondNs);
  failed.targets[0].state = TargetState::kRefused;
  EXPECT_THAT(exemplars_.Of({failed, Of("of_another", 1, 0, 20 * kSecondNs)}, kept_), IsEmpty());
  Capture running = Of("running", 0, 10 * kSecondNs, 20 * kSecondNs);
  running.state = CaptureState::kRunning;
  EXPECT_THAT(exemplars_.Of({running}, kept_), IsEmpty());
}

}  // namespace
}  // namespace lockstep::agent
