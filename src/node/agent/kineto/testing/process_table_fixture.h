#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/nanoseconds.h"
#include "node/agent/kineto/process_table.h"

namespace lockstep::agent {

inline constexpr int64_t kStart = 1'700'000'000 * kSecondNs;

/// A table, a clock that only moves when told, and a sink that keeps what was sent.
class ProcessTableTest : public ::testing::Test, protected ReplySink {
 protected:
  ProcessTableTest() { Make({}); }

  void Make(ProcessTableOptions options) {
    options.host = "n001";
    options.wall_clock_ns = [this] { return now_ns_ + clock_step_ns_ * clock_reads_++; };
    table_ = std::make_unique<ProcessTable>(std::move(options));
  }

  Outcome Send(const Sender& to, std::span<const std::byte> header, std::string_view payload) override {
    EXPECT_EQ(header.size(), kHeaderBytes);
    if (outcome_ != Outcome::kSent) return outcome_;
    now_ns_ += send_takes_ns_;
    sent_to_.push_back(to.address);
    sent_.emplace_back(payload);
    return outcome_;
  }

  ProcessTable::Next Handle(const std::vector<std::byte>& bytes, const Sender& sender, int64_t age_ns = 0) {
    return table_->Handle({.bytes = bytes,
                           .sender = sender,
                           .sent_unix_ns = now_ns_ - age_ns,
                           .now_unix_ns = now_ns_,
                           .now_monotonic_ns = now_ns_ - kStart},
                          this);
  }
  ProcessTable::Next Poll(const Sender& sender, int32_t mask = 3, int64_t age_ns = 0) {
    return Handle(WritePoll({.mask = mask, .job_id = 0, .pids = {sender.pid, 1000}}), sender, age_ns);
  }

  static Sender From(int32_t pid, uint32_t uid = 7) {
    return {.socket_idx = 0, .address = std::string("\0client", 7) + std::to_string(pid), .pid = pid, .uid = uid};
  }
  /// Registers and publishes it; its id.
  std::string Register(const Sender& sender, proc::ProcessDetails details = {}) {
    details.start_ticks = 42;
    table_->SetDetails(Poll(sender).new_client, details, false);
    return std::to_string(sender.pid) + "-42";
  }
  std::vector<RegistryEvent::Kind> EventKinds() {
    std::vector<RegistryEvent::Kind> kinds;
    for (const RegistryEvent& event : table_->TakeEvents()) kinds.push_back(event.kind);
    return kinds;
  }
  control::ProcessState StateOf(const std::string& id) { return table_->Find(id)->state; }

  int64_t now_ns_ = kStart;
  int64_t clock_step_ns_ = 0;
  int64_t clock_reads_ = 0;
  int64_t send_takes_ns_ = 0;
  Outcome outcome_ = Outcome::kSent;
  std::vector<std::string> sent_;
  std::vector<std::string> sent_to_;
  std::unique_ptr<ProcessTable> table_;
};

}  // namespace lockstep::agent
