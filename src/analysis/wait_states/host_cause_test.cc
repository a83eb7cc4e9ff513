#include "analysis/wait_states/host_cause.h"

#include <gtest/gtest.h>

namespace lockstep::analysis {
namespace {

TEST(HostCauseTest, CollectionsAreKnownByTheModulesNames) {
  EXPECT_EQ(HostKindOf("gc.collect"), HostKind::kGarbageCollection);
  EXPECT_EQ(HostKindOf("gc: generation 2"), HostKind::kGarbageCollection);
  EXPECT_EQ(HostKindOf("gc"), HostKind::kGarbageCollection);
  EXPECT_EQ(HostKindOf("<built-in function collect>"), HostKind::kGarbageCollection);
  EXPECT_EQ(HostKindOf("Python GC"), HostKind::kGarbageCollection);
  EXPECT_EQ(HostKindOf("GC (generation 2)"), HostKind::kGarbageCollection);
  EXPECT_EQ(HostKindOf("gc.py(12): collect"), HostKind::kGarbageCollection);
  EXPECT_EQ(HostKindOf("trainer.py(8): manual_gc"), HostKind::kGarbageCollection);
  EXPECT_EQ(HostKindOf("nn.Module: gc_block_1"), HostKind::kWork);
  EXPECT_EQ(HostKindOf("agc"), HostKind::kWork);
  EXPECT_EQ(HostKindOf("gcn_layer"), HostKind::kWork);
}

TEST(HostCauseTest, RecomputationOfActivationsIsNoCheckpoint) {
  EXPECT_EQ(HostKindOf("torch/utils/checkpoint.py(451): checkpoint"), HostKind::kWork);
  EXPECT_EQ(HostKindOf("CheckpointFunctionBackward"), HostKind::kWork);
  EXPECT_EQ(HostKindOf("torch/serialization.py(850): save"), HostKind::kCheckpoint);
  EXPECT_EQ(HostKindOf("Trainer._save_checkpoint"), HostKind::kCheckpoint);
}

TEST(HostCauseTest, CallsOfTheAllocatorAndLaunchesAreToldFromOthers) {
  EXPECT_EQ(HostKindOf("cudaMalloc"), HostKind::kAllocator);
  EXPECT_EQ(HostKindOf("hipFree"), HostKind::kAllocator);
  EXPECT_EQ(HostKindOf("cudaLaunchKernelExC"), HostKind::kLaunch);
  EXPECT_EQ(HostKindOf("cudaStreamSynchronize"), HostKind::kWork);
}

TEST(HostCauseTest, WindowsAndCollectivesAreNoWork) {
  EXPECT_EQ(HostKindOf("ProfilerStep#7"), HostKind::kStep);
  EXPECT_EQ(HostKindOf("gloo:all_reduce"), HostKind::kSkipped);
  EXPECT_EQ(HostKindOf("c10d::allreduce_"), HostKind::kCollectiveCall);
  EXPECT_EQ(HostKindOf("comm"), HostKind::kCollectiveCall);
  EXPECT_EQ(HostKindOf("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"), HostKind::kDataLoading);
}

}  // namespace
}  // namespace lockstep::analysis
