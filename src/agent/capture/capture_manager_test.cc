#include "agent/capture/capture_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "agent/capture/capture_manager_impl.h"
#include "agent/capture/fake_registry.h"

namespace lockstep::agent {
namespace {

using control::Capture;
using control::CaptureSpec;
using control::CaptureState;
using control::TargetState;
using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;

std::string Slurp(int fd) {
  std::string text;
  char bytes[4096];
  for (ssize_t count; (count = read(fd, bytes, sizeof(bytes))) > 0;) text.append(bytes, count);
  return text;
}

class CaptureManagerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lockstep-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    chmod(name, 0755);
    options_.state_folder = folder_ + "/state";
    options_.output_folder = folder_ + "/out";
    options_.host = "node7";
    options_.startup_wait_ns = 0;
    me_ = {.uid = geteuid(), .may_trace_all = false, .name = "me"};
  }
  void TearDown() override {
    manager_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Begin() {
    auto manager = CaptureManager::Create(options_, &registry_);
    ASSERT_TRUE(manager) << manager.error().ToString();
    manager_ = std::move(*manager);
  }
  control::Process Register(const TestChild& child, std::optional<int32_t> rank = std::nullopt) {
    const control::Process process = FakeRegistry::ProcessOf(child.pid(), rank);
    registry_.Register(process);
    return process;
  }
  template <typename Condition>
  bool WaitFor(Condition condition) {
    for (int i = 0; i < 4000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  Capture Get(const std::string& id) {
    auto capture = manager_->Get(id, {.uid = 0, .may_trace_all = true, .name = "root"});
    return capture ? *capture : Capture{};
  }
  bool WaitForOffer(const control::Process& process) {
    return WaitFor([&] { return registry_.HasOffer(process.id); });
  }
  bool WaitForEnd(const std::string& id) {
    return WaitFor([&] { return IsFinal(Get(id).state); });
  }
  size_t FileCount(const std::string& folder) {
    size_t count = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
      count += entry.is_directory() ? 0 : 1;
    }
    return count;
  }

  std::string folder_;
  CaptureManagerOptions options_;
  Caller me_;
  FakeRegistry registry_;
  std::unique_ptr<CaptureManager> manager_;
};

TEST_F(CaptureManagerTest, ATraceComesFromStartToOpen) {
  TestChild child;
  const control::Process process = Register(child, 3);
  Begin();
  auto started = manager_->Start(CaptureSpec{}, me_);
  ASSERT_TRUE(started) << started.error().ToString();
  EXPECT_EQ(started->state, CaptureState::kRunning);
  EXPECT_EQ(started->id.size(), 16u);
  ASSERT_TRUE(WaitForOffer(process));
  const auto text = registry_.Deliver(process.id, Now().wall_ns);
  ASSERT_TRUE(text);
  ASSERT_TRUE(WaitFor([&] { return Get(started->id).targets[0].state == TargetState::kDelivered; }));
  FakeRegistry::WriteTrace(*text, process, "{\"traceEvents\": []}");
  ASSERT_TRUE(WaitForEnd(started->id));
  const Capture done = Get(started->id);
  EXPECT_EQ(done.state, CaptureState::kDone);
  EXPECT_EQ(done.targets[0].trace_bytes, 19u);
  EXPECT_THAT(done.targets[0].trace_name, testing::MatchesRegex("77-node7-rank3-pid[0-9]+-[0-9]{8}T[0-9]{9}Z\\.json"));
  auto open = manager_->Open(started->id, done.targets[0].trace_name, me_);
  ASSERT_TRUE(open) << open.error().ToString();
  EXPECT_EQ(open->size_bytes, 19u);
  EXPECT_EQ(Slurp(open->fd.get()), "{\"traceEvents\": []}");
}

}  // namespace
}  // namespace lockstep::agent
