#include "present/live_site/action_desk.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <string>

#include "base/now.h"

namespace lockstep::live_site {
namespace {

constexpr int64_t kMinute = 60'000'000'000;

class ActionDeskTest : public testing::Test {
 protected:
  static Action Of(const std::string& job_id, ActionKind kind = ActionKind::kCapture) {
    Action action;
    action.kind = kind;
    action.job_id = job_id;
    return action;
  }
  /// Ends when the gate opens or it is cancelled.
  ActionDesk::Work Waits() {
    return [this](ActionDesk::Desk& desk) -> Result<Pages> {
      std::unique_lock lock(mutex_);
      while (!is_open_ && !desk.cancelled()) changed_.wait_for(lock, std::chrono::milliseconds(5));
      if (desk.cancelled()) return Error{ErrorCode::kCancelled, "cancelled"};
      return Pages([](const http::Request& request) { return http::TextResponse(200, "page " + request.path); });
    };
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  ActionState StateOf(const std::string& id) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return ended_.contains(id); });
    return ended_.at(id);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  std::map<std::string, ActionState> ended_;
  std::unique_ptr<ActionDesk> desk_ = std::make_unique<ActionDesk>([] {},
                                                                   [this](const Action& action) {
                                                                     const std::lock_guard lock(mutex_);
                                                                     ended_[action.id] = action.state;
                                                                     changed_.notify_all();
                                                                   });
};

TEST_F(ActionDeskTest, OneOfAJobAtATimeAndFourInAll) {
  ASSERT_TRUE(desk_->Begin(Of("a"), Waits()));
  EXPECT_EQ(desk_->Begin(Of("a"), Waits()).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(desk_->Begin(Of(""), Waits()).error().code, ErrorCode::kFailedPrecondition);
  ASSERT_TRUE(desk_->Begin(Of("a", ActionKind::kHang), Waits()));
  ASSERT_TRUE(desk_->Begin(Of("b"), Waits()));
  const auto last = desk_->Begin(Of("c"), Waits());
  ASSERT_TRUE(last);
  EXPECT_EQ(desk_->Begin(Of("d"), Waits()).error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(desk_->FindPages(ActionKind::kCapture, *last), nullptr);
  Open();
  EXPECT_EQ(StateOf(*last), ActionState::kReady);
  const auto pages = desk_->FindPages(ActionKind::kCapture, *last);
  ASSERT_NE(pages, nullptr);
  http::Request request;
  request.path = "/data/main";
  EXPECT_EQ(*(*pages)(request).body, "page /data/main");
  EXPECT_EQ(desk_->FindPages(ActionKind::kHang, *last), nullptr);
}

TEST_F(ActionDeskTest, PagesThatHoldMuchMakeRoomForNewerOnes) {
  const auto begin = [&](const std::string& job_id, uint64_t bytes, ActionKind kind = ActionKind::kCapture) {
    const auto id = desk_->Begin(Of(job_id, kind), [bytes](ActionDesk::Desk& desk) -> Result<Pages> {
      desk.Hold(bytes);
      return Pages([](const http::Request&) { return http::TextResponse(200, ""); });
    });
    EXPECT_TRUE(id);
    EXPECT_EQ(StateOf(*id), ActionState::kReady);
    return *id;
  };
  const auto is_kept = [&](const std::string& id) { return desk_->FindPages(ActionKind::kCapture, id) != nullptr; };
  constexpr uint64_t kHalf = ActionDesk::kMostPageBytes / 2;
  const std::string first = begin("a", kHalf);
  const std::string second = begin("b", kHalf);
  EXPECT_TRUE(is_kept(first));
  const std::string third = begin("c", 1);
  EXPECT_FALSE(is_kept(first));
  EXPECT_TRUE(is_kept(second));
  // The newest of its kind stays, also beside what is newer.
  const std::string large = begin("d", 10 * kHalf);
  EXPECT_TRUE(is_kept(large));
  EXPECT_FALSE(is_kept(second));
  EXPECT_FALSE(is_kept(third));
  begin("d", 10 * kHalf, ActionKind::kHang);
  EXPECT_TRUE(is_kept(large));
}

TEST_F(ActionDeskTest, ARefusalAfterOthersHaveEndedIsOne) {
  ASSERT_TRUE(desk_->Begin(Of("a"), Waits()));
  for (int i = 0; i < 200; ++i) {
    const auto ended = desk_->Begin(Of("b", ActionKind::kHang), [](ActionDesk::Desk&) -> Result<Pages> {
      return Error{ErrorCode::kNotFound, "nothing"};
    });
    if (ended) StateOf(*ended);
    EXPECT_EQ(desk_->Begin(Of("a"), Waits()).error().code, ErrorCode::kFailedPrecondition);
  }
  Open();
}

TEST_F(ActionDeskTest, OneThatIsCancelledEnds) {
  const auto id = desk_->Begin(Of("a"), Waits());
  EXPECT_FALSE(desk_->Cancel(ActionKind::kHang, *id));
  EXPECT_TRUE(desk_->Cancel(ActionKind::kCapture, *id));
  EXPECT_EQ(StateOf(*id), ActionState::kCancelled);
  EXPECT_EQ(desk_->Cancel(ActionKind::kCapture, *id).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(desk_->Cancel(ActionKind::kCapture, "x").error().code, ErrorCode::kNotFound);
}

TEST_F(ActionDeskTest, WhatFailsSaysWhy) {
  const auto id = desk_->Begin(Of("a"), [](ActionDesk::Desk& desk) -> Result<Pages> {
    desk.Change([](Action& action) { action.folder = "/traces"; });
    return Error{ErrorCode::kNotFound, "nobody listens"};
  });
  EXPECT_EQ(StateOf(*id), ActionState::kFailed);
  const std::string json = desk_->Json();
  EXPECT_NE(json.find(R"("state":"failed","reason":"nobody listens")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("folder":"/traces")"), std::string::npos) << json;
  const auto thrown = desk_->Begin(Of("a"), [](ActionDesk::Desk&) -> Result<Pages> { throw std::bad_alloc(); });
  EXPECT_EQ(StateOf(*thrown), ActionState::kFailed);
}

TEST_F(ActionDeskTest, OldPagesMakeRoomAndTheListIsBounded) {
  Open();
  std::string first;
  std::string newest;
  for (size_t i = 0; i < ActionDesk::kMostListed + 10; ++i) {
    Result<std::string> id = Error{ErrorCode::kLimitExceeded, ""};
    while (!id) id = desk_->Begin(Of(std::to_string(i)), Waits());
    newest = *id;
    if (first.empty()) first = newest;
    EXPECT_EQ(StateOf(newest), ActionState::kReady);
    if (i == ActionDesk::kMostPages) {
      EXPECT_EQ(desk_->FindPages(ActionKind::kCapture, first), nullptr);
      EXPECT_NE(desk_->Json().find(R"("state":"dropped")"), std::string::npos);
    }
  }
  EXPECT_NE(desk_->FindPages(ActionKind::kCapture, newest), nullptr);
  const std::string json = desk_->Json();
  size_t listed = 0;
  for (size_t at = json.find("\"id\""); at != std::string::npos; at = json.find("\"id\"", at + 1)) ++listed;
  EXPECT_EQ(listed, ActionDesk::kMostListed);
}

TEST_F(ActionDeskTest, EndCancelsAllAndTakesNothingMore) {
  const auto id = desk_->Begin(Of("a"), Waits());
  EXPECT_TRUE(desk_->End(kMinute));
  EXPECT_EQ(StateOf(*id), ActionState::kCancelled);
  EXPECT_EQ(desk_->Begin(Of("b"), Waits()).error().code, ErrorCode::kCancelled);
  desk_.reset();
}

}  // namespace
}  // namespace lockstep::live_site
