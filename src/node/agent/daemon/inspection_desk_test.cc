#include "node/agent/daemon/inspection_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <set>
#include <thread>

#include "node/control/api/json.h"

namespace lockstep::agent {
namespace {

using control::Inspection;
using control::InspectionSpec;
using control::InspectionState;

const Caller kAlice{1000, false, "alice"};
const Caller kBob{1001, false, "bob"};
const Caller kRoot{0, true, "root"};

/// Looks that end when the test says so.
class Desk : public ::testing::Test {
 protected:
  ~Desk() override { go_.release(64); }

  Result<Inspection> Look(const InspectionSpec& spec, const std::function<bool(uint32_t)>& allowed) {
    go_.acquire();
    for (const uint32_t uid : {0U, 1000U, 1001U}) {
      if (allowed(uid)) allowed_.insert(uid);
    }
    if (spec.job_id == "none") return Error{ErrorCode::kNotFound, "no such job"};
    Inspection inspection;
    inspection.host = "n1";
    inspection.glances.emplace_back().pid = 7;
    return inspection;
  }
  std::string Start(const Caller& caller, const std::string& job = "1") {
    InspectionSpec spec;
    spec.job_id = job;
    const Result<Inspection> inspection = desk_.Start(spec, caller);
    EXPECT_TRUE(inspection) << inspection.error().message;
    EXPECT_EQ(inspection->state, InspectionState::kQueued);
    return inspection->id;
  }
  Result<std::string> WaitFor(const std::string& id, const Caller& caller) {
    for (;;) {
      bool is_done = false;
      Result<std::string> answer = desk_.Get(id, caller, &is_done);
      if (!answer || is_done) return answer;
      std::this_thread::yield();
    }
  }

  std::counting_semaphore<256> go_{0};
  std::set<uint32_t> allowed_;
  std::atomic<int64_t> now_ns_ = 0;
  InspectionDesk desk_{[this](const auto& spec, const auto& allowed) { return Look(spec, allowed); },
                       [this] { return now_ns_.load(); }};
};

TEST_F(Desk, AnswerIsFetchedByWhoAskedAlone) {
  const std::string id = Start(kAlice);
  bool is_done = true;
  const Result<std::string> before = desk_.Get(id, kAlice, &is_done);
  ASSERT_TRUE(before);
  EXPECT_FALSE(is_done);
  go_.release();
  const Result<std::string> answer = WaitFor(id, kAlice);
  ASSERT_TRUE(answer);
  const Result<Inspection> inspection = control::ReadInspection(*answer);
  ASSERT_TRUE(inspection) << inspection.error().message;
  EXPECT_EQ(inspection->id, id);
  EXPECT_EQ(inspection->state, InspectionState::kDone);
  EXPECT_EQ(inspection->glances.at(0).pid, 7);
  EXPECT_GT(inspection->now_unix_ns, 0);
  EXPECT_EQ(desk_.Get(id, kBob, &is_done).error().code, ErrorCode::kNotFound);
  desk_.Forget(id);
  EXPECT_EQ(desk_.Get(id, kAlice, &is_done).error().code, ErrorCode::kNotFound);
}

TEST_F(Desk, EachUserSeesItsOwnAndRootSeesAll) {
  go_.release(2);
  ASSERT_TRUE(WaitFor(Start(kBob), kBob));
  EXPECT_EQ(allowed_, (std::set<uint32_t>{1001}));
  ASSERT_TRUE(WaitFor(Start(kRoot), kRoot));
  EXPECT_EQ(allowed_, (std::set<uint32_t>{0, 1000, 1001}));
}

TEST_F(Desk, ErrorOfTheLookIsItsAnswer) {
  go_.release();
  EXPECT_EQ(WaitFor(Start(kAlice, "none"), kAlice).error().code, ErrorCode::kNotFound);
}

TEST_F(Desk, QueueIsBounded) {
  const std::string first = Start(kAlice);
  // Taken up, so that it does not wait any more.
  for (bool is_done = false; desk_.Get(first, kAlice, &is_done)->find("running") == std::string::npos;) {
    std::this_thread::yield();
  }
  for (size_t i = 0; i < InspectionDesk::kWaiting; ++i) Start(kAlice);
  EXPECT_EQ(desk_.Start({}, kAlice).error().code, ErrorCode::kLimitExceeded);
}

TEST_F(Desk, AnswersThatNobodyFetchesGo) {
  go_.release(64);
  const std::string first = Start(kAlice);
  ASSERT_TRUE(WaitFor(first, kAlice));
  for (size_t i = 0; i < InspectionDesk::kKept; ++i) ASSERT_TRUE(WaitFor(Start(kAlice), kAlice));
  bool is_done = false;
  EXPECT_EQ(desk_.Get(first, kAlice, &is_done).error().code, ErrorCode::kNotFound);
  const std::string last = Start(kAlice);
  ASSERT_TRUE(WaitFor(last, kAlice));
  now_ns_ = InspectionDesk::kKeptNs + 1;
  EXPECT_EQ(desk_.Get(last, kAlice, &is_done).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace lockstep::agent
