// The profiler plugin called as NCCL calls it, through every version of the interface, in a process of its own each
// time; its file read by what `lockstep hang` reads it with.
#include <dirent.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "ingest/nccl_ring/nccl_ring.h"
#include "ingest/nccl_ring/ring_copy.h"
#include "ingest/nccl_ring/ring_pulse.h"
#include "inside/nccl_profiler/ring_format.h"
#include "nccl_driver.h"

namespace lockstep {
namespace {

using ingest::NcclRing;
using ingest::NcclRingOperation;
using ingest::NcclRingState;
using ingest::NcclRingWait;
using testing::ElementsAre;
using testing::SizeIs;

constexpr uint64_t kCommunicator = 0xFEEDBEEF12345678;

class NcclProfilerTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string("lockstep_") + test->name() + "_" + std::to_string(::getpid());
    std::replace(name.begin(), name.end(), '/', '_');
    folder_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// What the plugin leaves behind of a process that does `work` and ends, or is ended.
  void InProcess(const std::function<void(NcclDriver&)>& work, const std::vector<std::string>& settings = {}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("LOCKSTEP_NCCL_DIR", folder_.c_str(), 1);
      ::setenv("RANK", "3", 1);
      ::setenv("WORLD_SIZE", "8", 1);
      for (const std::string& setting : settings) ::putenv(const_cast<char*>(setting.c_str()));
      NcclDriver driver(LOCKSTEP_NCCL_PROFILER, GetParam());
      if (!driver.loaded()) ::_exit(99);
      work(driver);
      ::_exit(0);
    }
    ::waitpid(child, &status_, 0);
    pid_ = child;
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) files.push_back(entry.path().string());
    return files;
  }
  std::string Bytes() const {
    const std::vector<std::string> files = Files();
    EXPECT_THAT(files, SizeIs(1));
    if (files.size() != 1) return {};
    std::ifstream file(files[0], std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Of a file of which only `size` bytes are there.
  static ingest::ReadRingAt ReaderOf(const std::string& bytes, size_t size) {
    return [&bytes, size](uint64_t offset, std::span<char> into) {
      if (offset > size || into.size() > size - offset) return false;
      std::memcpy(into.data(), bytes.data() + offset, into.size());
      return true;
    };
  }
  static Result<ingest::NcclRingPulse> Pulse(const std::string& bytes, size_t size) {
    return ingest::ReadNcclRingPulse(ReaderOf(bytes, size));
  }
  NcclRing Read() {
    const std::string bytes = Bytes();
    auto ring = ingest::ReadNcclRing(bytes);
    EXPECT_TRUE(ring) << ring.error().ToString();
    return ring ? std::move(*ring) : NcclRing();
  }
  void ExpectEndedWell() const { EXPECT_TRUE(WIFEXITED(status_) && WEXITSTATUS(status_) == 0) << status_; }

  std::filesystem::path folder_;
  int status_ = 0;
  pid_t pid_ = 0;
};

TEST_P(NcclProfilerTest, CollectivesAreRecordedWhole) {
  InProcess([](NcclDriver& nccl) {
    void* const context = nccl.Init(kCommunicator, "dp0", 1, 2);
    EXPECT_EQ(nccl.Group(context), nullptr) << "groups are not wanted";
    nccl.Whole(context, kCommunicator, 1, 0, 4096, 2);
    nccl.Whole(context, kCommunicator, 1, 1, 8192, 2);
    nccl.Finalize(context);
  });
  ExpectEndedWell();
  const NcclRing ring = Read();
  EXPECT_EQ(ring.pid, pid_);
  EXPECT_EQ(ring.rank, 3);
  EXPECT_EQ(ring.world_size, 8);
  EXPECT_EQ(ring.interface_version, static_cast<uint32_t>(GetParam()));
  ASSERT_THAT(ring.communicators, SizeIs(1));
  EXPECT_EQ(ring.communicators[0].id, kCommunicator);
  EXPECT_EQ(ring.communicators[0].rank, 1);
  EXPECT_EQ(ring.communicators[0].collective_count, 2u);
  EXPECT_EQ(ring.communicators[0].done_count, 2u);
  if (GetParam() >= 4) {
    EXPECT_EQ(ring.communicators[0].name, "dp0");
    EXPECT_EQ(ring.communicators[0].rank_count, 2);
    EXPECT_TRUE(ring.communicators[0].is_finalized);
  }
  ASSERT_THAT(ring.operations, SizeIs(2));
  const NcclRingOperation& operation = ring.operations[1];
  EXPECT_EQ(operation.function, "AllReduce");
  EXPECT_EQ(operation.datatype, "ncclFloat32");
  EXPECT_EQ(operation.algorithm, "RING");
  EXPECT_EQ(operation.protocol, "SIMPLE");
  EXPECT_EQ(operation.element_count, 8192u);
  EXPECT_EQ(operation.channel_count, 2u);
  EXPECT_EQ(operation.order, 2u);
  EXPECT_EQ(operation.state, NcclRingState::kDone);
  EXPECT_FALSE(operation.is_p2p);
  EXPECT_LE(operation.begin_unix_ns, *operation.enqueued_unix_ns);
  EXPECT_LE(*operation.enqueued_unix_ns, *operation.done_unix_ns);
  if (GetParam() >= 4) {
    EXPECT_EQ(operation.device_ns, 5000);
  }
}

TEST_P(NcclProfilerTest, PointToPointIsRecorded) {
  InProcess([](NcclDriver& nccl) {
    void* const context = nccl.Init(kCommunicator, "pp", 1, 4);
    void* const send = nccl.Send(context, kCommunicator, 1, 2, 100);
    nccl.Stop(send);
    if (nccl.version() >= 3) {
      nccl.StopKernel(nccl.Kernel(context, send, 0, 10), 30);
    } else {
      nccl.Stop(nccl.Proxy(context, send, 2, true));
    }
  });
  ExpectEndedWell();
  const NcclRing ring = Read();
  ASSERT_THAT(ring.operations, SizeIs(1));
  EXPECT_TRUE(ring.operations[0].is_p2p);
  EXPECT_EQ(ring.operations[0].function, "Send");
  EXPECT_EQ(ring.operations[0].root, 2);
  EXPECT_EQ(ring.operations[0].element_count, 100u);
  EXPECT_EQ(ring.operations[0].state, NcclRingState::kDone);
  EXPECT_EQ(ring.communicators[0].p2p_count, 1u);
}

TEST_P(NcclProfilerTest, WhatIsOpenIsKnownAfterTheProcessWasKilled) {
  InProcess([](NcclDriver& nccl) {
    void* const context = nccl.Init(kCommunicator, "dp0", 1, 2);
    nccl.Whole(context, kCommunicator, 1, 0, 4096, 2);
    void* const stuck = nccl.AllReduce(context, kCommunicator, 1, 1, 4096, 2);
    nccl.Stop(stuck);
    // One of two channels came to an end; or, without kernels' events, nothing of the proxy.
    if (nccl.version() >= 3) {
      nccl.StopKernel(nccl.Kernel(context, stuck, 0, 10), 30);
      nccl.Kernel(context, stuck, 1, 10);
    } else {
      nccl.Proxy(context, stuck, 0, true);
    }
    nccl.AllReduce(context, kCommunicator, 1, 2, 4096, 2);
    ::raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status_));
  const NcclRing ring = Read();
  std::vector<NcclRingState> states;
  for (const NcclRingOperation& operation : ring.operations) states.push_back(operation.state);
  EXPECT_THAT(states, ElementsAre(NcclRingState::kDone, NcclRingState::kRunning, NcclRingState::kBegun));
  const evidence::FlightRecord record = ingest::ToFlightRecord(ring);
  ASSERT_THAT(record.entries, SizeIs(3));
  EXPECT_EQ(record.texts[record.entries[1].operation], "nccl:all_reduce");
  EXPECT_EQ(record.entries[1].collective_sequence, 2);
  EXPECT_EQ(record.entries[1].state, evidence::EntryState::kStarted);
  EXPECT_EQ(record.entries[2].state, evidence::EntryState::kScheduled);
  EXPECT_EQ(record.groups[0].name, "communicator 0xfeedbeef12345678");
}

TEST_P(NcclProfilerTest, StepsOfTheProxySayOnWhomItWaits) {
  InProcess(
      [](NcclDriver& nccl) {
        void* const context = nccl.Init(kCommunicator, "dp0", 1, 4);
        EXPECT_NE(nccl.mask() & NcclDriver::kProxyStep, 0);
        void* const operation = nccl.AllReduce(context, kCommunicator, 1, 0, 4096, 1);
        nccl.Stop(operation);
        EXPECT_EQ(nccl.Proxy(context, operation, 3, true, ::getpid() + 1), nullptr) << "another process's parent";
        void* const proxy = nccl.Proxy(context, operation, 3, true);
        void* const step = nccl.Step(context, proxy, 0);
        nccl.State(step, 8, nullptr);
        ::usleep(2000);
        nccl.State(step, nccl.version() >= 4 ? 20 : 9, nullptr);
        ::usleep(2000);
        nccl.State(step, 9, nullptr);
        ::usleep(1000);
        nccl.Stop(step);
        void* const receive = nccl.Proxy(context, operation, 2, false);
        nccl.State(nccl.Step(context, receive, 0), 10, nullptr);
        ::raise(SIGKILL);
      },
      {"LOCKSTEP_NCCL_STEPS=1"});
  const NcclRing ring = Read();
  ASSERT_THAT(ring.operations, SizeIs(1));
  const NcclRingOperation& operation = ring.operations[0];
  EXPECT_EQ(operation.waiting_for, NcclRingWait::kPeer);
  EXPECT_EQ(operation.waiting_peer, 2);
  EXPECT_GE(operation.device_wait_ns, 2'000'000);
  EXPECT_GE(operation.network_wait_ns, 1'000'000);
  if (GetParam() >= 4) {
    EXPECT_GE(operation.peer_wait_ns, 2'000'000);
  }
}

TEST_P(NcclProfilerTest, OperationsUnderWayAreNotOverwrittenAndDropsAreCounted) {
  InProcess(
      [](NcclDriver& nccl) {
        void* const context = nccl.Init(kCommunicator, "dp0", 0, 2);
        int recorded = 0;
        for (uint64_t i = 0; i < 100; ++i) {
          if (nccl.AllReduce(context, kCommunicator, 0, i, 1, 1) != nullptr) ++recorded;
        }
        EXPECT_EQ(recorded, 64);
      },
      {"LOCKSTEP_NCCL_OPERATIONS=64"});
  ExpectEndedWell();
  const NcclRing ring = Read();
  EXPECT_THAT(ring.operations, SizeIs(64));
  EXPECT_EQ(ring.dropped_count, 36u);
}

TEST_P(NcclProfilerTest, TheOldestOfWhatIsDoneGivesWay) {
  InProcess(
      [](NcclDriver& nccl) {
        void* const context = nccl.Init(kCommunicator, "dp0", 0, 2);
        for (uint64_t i = 0; i < 1000; ++i) nccl.Whole(context, kCommunicator, 0, i, i, 1);
      },
      {"LOCKSTEP_NCCL_OPERATIONS=64"});
  ExpectEndedWell();
  const NcclRing ring = Read();
  ASSERT_THAT(ring.operations, SizeIs(64));
  EXPECT_EQ(ring.operations.back().element_count, 999u);
  EXPECT_EQ(ring.operations.front().element_count, 936u);
  EXPECT_EQ(ring.dropped_count, 0u);
  EXPECT_EQ(ring.communicators[0].done_count, 1000u);
}

TEST_P(NcclProfilerTest, SumsHoldWhatWasOverwritten) {
  InProcess(
      [](NcclDriver& nccl) {
        void* const context = nccl.Init(kCommunicator, "dp0", 0, 2);
        for (uint64_t i = 0; i < 1000; ++i) nccl.Whole(context, kCommunicator, 0, i, 100, 1);
        nccl.AllReduce(context, kCommunicator, 0, 1000, 100, 1);
        ::raise(SIGKILL);
      },
      {"LOCKSTEP_NCCL_OPERATIONS=64"});
  const std::string bytes = Bytes();
  const auto pulse = Pulse(bytes, bytes.size());
  ASSERT_TRUE(pulse) << pulse.error().ToString();
  EXPECT_EQ(pulse->pid, pid_);
  ASSERT_THAT(*pulse->totals, SizeIs(1));
  const ingest::NcclRingTotal& total = pulse->totals->front();
  EXPECT_EQ(total.function, "AllReduce");
  EXPECT_EQ(total.begun, 1001u);
  EXPECT_EQ(total.enqueued, 1000u);
  EXPECT_EQ(total.started, GetParam() >= 3 ? 1000u : 0u);
  EXPECT_EQ(total.completed, 1000u);
  EXPECT_EQ(total.bytes, 400'000u);
  if (GetParam() >= 4) {
    EXPECT_EQ(total.duration_ns, 1000u * 5000);
  }
  ASSERT_THAT(pulse->oldest_begin_ns, SizeIs(1));
  EXPECT_TRUE(pulse->oldest_begin_ns[0].has_value());
}

TEST_P(NcclProfilerTest, ACopyHasWhatIsUnderWayAndTheNewest) {
  InProcess(
      [](NcclDriver& nccl) {
        void* const context = nccl.Init(kCommunicator, "dp0", 0, 2);
        void* const first = nccl.AllReduce(context, kCommunicator, 0, 0, 1, 1);
        nccl.Stop(first);
        if (nccl.version() >= 3) {
          nccl.Kernel(context, first, 0, 1);
        } else {
          nccl.Proxy(context, first, 1, true);
        }
        for (uint64_t i = 1; i < 100; ++i) nccl.Whole(context, kCommunicator, 0, i, 1, 1);
        ::raise(SIGKILL);
      },
      {"LOCKSTEP_NCCL_OPERATIONS=64"});
  const std::string bytes = Bytes();
  const auto copy = ingest::CopyNewest(ReaderOf(bytes, bytes.size()), 10);
  ASSERT_TRUE(copy) << copy.error().ToString();
  EXPECT_LE(copy->size(), 4096u + 256 + 11 * 256);
  const auto ring = ingest::ReadNcclRing(*copy);
  ASSERT_TRUE(ring) << ring.error().ToString();
  EXPECT_EQ(ring->pid, pid_);
  ASSERT_THAT(ring->operations, SizeIs(11));
  EXPECT_EQ(ring->operations.front().state, NcclRingState::kRunning);
  EXPECT_EQ(ring->operations.front().order, 1u);
  EXPECT_EQ(ring->operations[1].order, 91u);
  EXPECT_EQ(ring->operations.back().order, 100u);
  EXPECT_FALSE(ingest::CopyNewest(ReaderOf(bytes, 20'000), 10));
}

TEST_P(NcclProfilerTest, AFileFromBeforeThereWereSumsAndOneThatIsCut) {
  InProcess([](NcclDriver& nccl) { nccl.Whole(nccl.Init(kCommunicator, "dp0", 0, 2), kCommunicator, 0, 0, 1, 1); });
  std::string bytes = Bytes();
  const size_t without_sums = bytes.size() - 1024 * sizeof(instrument::RingTotal);
  for (const size_t size : {size_t{0}, size_t{15}, size_t{100}, size_t{4095}, size_t{5000}, without_sums}) {
    EXPECT_FALSE(Pulse(bytes, size)) << size;
  }
  instrument::RingHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.total_capacity = header.total_bytes = 0;
  header.total_offset = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  const auto pulse = Pulse(bytes, without_sums);
  ASSERT_TRUE(pulse) << pulse.error().ToString();
  EXPECT_FALSE(pulse->totals.has_value());
  EXPECT_EQ(pulse->communicators[0].done_count, 1u);
  EXPECT_TRUE(ingest::ReadNcclRing(std::string_view(bytes).substr(0, without_sums)));
}

TEST_P(NcclProfilerTest, OperationsWithoutRoomHaveTheirNumberAllTheSame) {
  InProcess(
      [](NcclDriver& nccl) {
        void* const context = nccl.Init(kCommunicator, "dp0", 0, 2);
        std::vector<void*> open;
        for (uint64_t i = 0; i < 64; ++i) open.push_back(nccl.AllReduce(context, kCommunicator, 0, i, 1, 1));
        EXPECT_EQ(nccl.AllReduce(context, kCommunicator, 0, 64, 1, 1), nullptr);
        nccl.Stop(open[0]);
        if (nccl.version() >= 3) {
          nccl.StopKernel(nccl.Kernel(context, open[0], 0, 1), 2);
        } else {
          nccl.Stop(nccl.Proxy(context, open[0], 1, true));
        }
        EXPECT_NE(nccl.AllReduce(context, kCommunicator, 0, 65, 1, 1), nullptr);
        if (testing::Test::HasFailure()) ::_exit(1);
      },
      {"LOCKSTEP_NCCL_OPERATIONS=64"});
  ExpectEndedWell();
  const NcclRing ring = Read();
  EXPECT_EQ(ring.operations.back().order, 66u);
  EXPECT_EQ(ring.dropped_operation_count, 1u);
}

TEST_P(NcclProfilerTest, ManyThreadsAtOnce) {
  constexpr int kThreads = 8;
  constexpr uint64_t kEach = 4000;
  InProcess([](NcclDriver& nccl) {
    std::vector<void*> contexts;
    for (int i = 0; i < kThreads; ++i)
      contexts.push_back(nccl.Init(kCommunicator + static_cast<uint64_t>(i), "c", 0, 2));
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&nccl, context = contexts[static_cast<size_t>(i)], i] {
        for (uint64_t n = 0; n < kEach; ++n) nccl.Whole(context, kCommunicator + static_cast<uint64_t>(i), 0, n, 7, 3);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  ExpectEndedWell();
  const NcclRing ring = Read();
  ASSERT_THAT(ring.communicators, SizeIs(kThreads));
  for (const auto& communicator : ring.communicators) {
    EXPECT_EQ(communicator.collective_count, kEach);
    // Without kernels' events one that is in a stream may give way before its proxy ends.
    if (GetParam() >= 3) {
      EXPECT_EQ(communicator.done_count, kEach);
    } else {
      EXPECT_GT(communicator.done_count, 0u);
      EXPECT_LE(communicator.done_count, kEach);
    }
  }
  EXPECT_EQ(ring.dropped_count, 0u);
  for (const NcclRingOperation& operation : ring.operations) {
    if (GetParam() >= 3) {
      EXPECT_EQ(operation.state, NcclRingState::kDone);
    }
  }
}

TEST_P(NcclProfilerTest, WhereNoFileCanBeTheJobGoesOn) {
  InProcess(
      [](NcclDriver& nccl) {
        void* const context = nccl.Init(kCommunicator, "dp0", 0, 2);
        EXPECT_EQ(nccl.mask(), 0) << "NCCL is to call nothing";
        EXPECT_EQ(nccl.AllReduce(context, kCommunicator, 0, 0, 1, 1), nullptr);
        nccl.Finalize(context);
        if (testing::Test::HasFailure()) ::_exit(1);
      },
      {"LOCKSTEP_NCCL_DIR=/no/such/folder"});
  ExpectEndedWell();
  EXPECT_THAT(Files(), SizeIs(0));
}

TEST_P(NcclProfilerTest, AChildOfForkWritesNothing) {
  InProcess([](NcclDriver& nccl) {
    void* const context = nccl.Init(kCommunicator, "dp0", 0, 2);
    const pid_t child = ::fork();
    if (child == 0) {
      void* const handle = nccl.AllReduce(context, kCommunicator, 0, 0, 1, 1);
      ::_exit(handle == nullptr ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    nccl.Whole(context, kCommunicator, 0, 0, 1, 1);
    ::_exit(status == 0 ? 0 : 1);
  });
  ExpectEndedWell();
  EXPECT_EQ(Read().operation_count, 1u);
}

TEST_P(NcclProfilerTest, WithoutAFolderTheFileGoesWithTheProcessUnlessItIsKilled) {
  const auto left = [this] {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      const std::string name = entry.path().filename().string();
      if (name.find("." + std::to_string(pid_) + ".ring") != std::string::npos) files.push_back(entry.path());
    }
    return files;
  };
  for (const bool is_killed : {false, true}) {
    InProcess(
        [&](NcclDriver& nccl) {
          nccl.Whole(nccl.Init(kCommunicator, "dp0", 0, 2), kCommunicator, 0, 0, 1, 1);
          if (is_killed) ::raise(SIGKILL);
          ::exit(0);
        },
        {"LOCKSTEP_NCCL_DIR="});
    const std::vector<std::string> files = left();
    EXPECT_THAT(files, SizeIs(is_killed ? 1 : 0));
    for (const std::string& file : files) std::filesystem::remove(file);
  }
}

TEST_P(NcclProfilerTest, CopyEngines) {
  if (GetParam() < 6) return;
  InProcess([](NcclDriver& nccl) {
    void* const context = nccl.Init(kCommunicator, "dp0", 0, 2);
    nccl.Stop(nccl.CopyEngine(context, 9, 77));
  });
  const NcclRing ring = Read();
  ASSERT_THAT(ring.operations, SizeIs(1));
  EXPECT_EQ(ring.operations[0].algorithm, "COPY_ENGINE");
  EXPECT_EQ(ring.operations[0].function, "AllGather");
  EXPECT_EQ(ring.operations[0].element_count, 77u);
  EXPECT_EQ(ring.operations[0].state, NcclRingState::kDone);
}

INSTANTIATE_TEST_SUITE_P(Versions, NcclProfilerTest, testing::Values(1, 2, 3, 4, 5, 6),
                         [](const auto& version) { return "v" + std::to_string(version.param); });

}  // namespace
}  // namespace lockstep
