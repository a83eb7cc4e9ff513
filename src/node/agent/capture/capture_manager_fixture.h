#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "base/nanoseconds.h"
#include "node/agent/capture/capture_manager.h"
#include "node/agent/capture/capture_manager_impl.h"
#include "node/agent/capture/fake_registry.h"

namespace lockstep::agent {

/// For tests: a manager over a registry that is driven by hand, real processes and real files.
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
    options_.restored_wait_ns = 0;
    options_.allow_unsafe = true;  // Processes of these tests are Kineto's.
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
    for (int i = 0; i < 48'000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  control::Capture Get(const std::string& id) {
    auto capture = manager_->Get(id, {.uid = 0, .may_trace_all = true, .name = "root"});
    return capture ? *capture : control::Capture{};
  }
  struct CommonStart {
    control::Process process;
    std::string id;
    int64_t start_unix_ns = 0;
  };
  /// A capture with a common start 6 s ahead, which is the least: its process asks ten times a second and warms up for
  /// no time. The process is offered it, and has not fetched it.
  void BeginWithCommonStart(const TestChild& child, CommonStart* made) {
    made->process = FakeRegistry::ProcessOf(child.pid(), 1);
    made->process.poll_period_ns = kSecondNs / 10;
    registry_.Register(made->process);
    Begin();
    control::CaptureSpec spec;
    spec.window.warmup_ns = 0;
    made->start_unix_ns = (Now().wall_ns / kSecondNs + 6) * kSecondNs;
    spec.window.start_unix_ns = made->start_unix_ns;
    const auto started = manager_->Start(spec, me_);
    ASSERT_TRUE(started) << started.error().ToString();
    made->id = started->id;
    ASSERT_TRUE(WaitForOffer(made->process));
  }
  /// Both ends: the process fetches its request, and writes a trace of it. False: it was not asked before the time
  /// limit.
  bool Trace(const control::Process& process, const std::string& content = "{}") {
    if (!WaitForOffer(process)) return false;
    const auto text = registry_.Deliver(process.id, Now().wall_ns);
    if (text) FakeRegistry::WriteTrace(*text, process, content);
    return text.has_value();
  }
  bool WaitForTarget(const std::string& id, control::TargetState state, size_t idx = 0) {
    return WaitFor([&] { return Get(id).targets.at(idx).state == state; });
  }
  bool WaitForOffer(const control::Process& process) {
    return WaitFor([&] { return registry_.HasOffer(process.id); });
  }
  bool WaitForEnd(const std::string& id) {
    return WaitFor([&] { return IsFinal(Get(id).state); });
  }
  /// Counted again where the manager removed a folder meanwhile.
  size_t FileCount(const std::string& folder) {
    while (std::filesystem::exists(folder)) {
      try {
        const auto files = std::filesystem::recursive_directory_iterator(folder);
        return static_cast<size_t>(
            std::count_if(begin(files), end(files), [](const auto& entry) { return !entry.is_directory(); }));
      } catch (const std::filesystem::filesystem_error& error) {
        if (error.code() != std::errc::no_such_file_or_directory) throw;
      }
    }
    return 0;
  }

  std::string folder_;
  CaptureManagerOptions options_;
  Caller me_;
  FakeRegistry registry_;
  std::unique_ptr<CaptureManager> manager_;
};

}  // namespace lockstep::agent
