#include "analysis/kernel_kind.h"

#include <gtest/gtest.h>

#include "analysis/testing/trace_builder.h"

namespace lockstep::analysis {
namespace {

TEST(KernelKindTest, ClaimedKernelsAreCommunicationAndOthersAreNoted) {
  testing::RunBuilder job;
  job.Rank(0).Kernel(7, "multimem_all_reduce_kernel", 0, 1).Kernel(7, "gemm", 2, 1);
  const model::Run run = job.Build();
  NameId name;
  ASSERT_TRUE(run.names.Find("multimem_all_reduce_kernel", &name));
  const std::vector<bool> unclaimed = ClassifyCommunication(run);
  EXPECT_FALSE(unclaimed[name.value]);
  const auto note = NoteUnclaimedCollectives(run, unclaimed);
  ASSERT_TRUE(note.has_value());
  EXPECT_EQ(note->count, 1U);
  const std::vector<bool> claimed = ClassifyCommunication(run, {"multimem"});
  EXPECT_TRUE(claimed[name.value]);
  EXPECT_FALSE(NoteUnclaimedCollectives(run, claimed).has_value());
}

TEST(KernelKindTest, CpuCollectivesAreKnownByTheirBackend) {
  EXPECT_TRUE(IsCpuCollectiveName("gloo:all_reduce"));
  EXPECT_TRUE(IsCpuCollectiveName("mpi:broadcast"));
  EXPECT_FALSE(IsCpuCollectiveName("nccl:all_reduce"));
  EXPECT_FALSE(IsCpuCollectiveName("c10d::allreduce_"));
}

TEST(KernelKindTest, OnlyNamesSeenOnDevicesAreClassified) {
  testing::RunBuilder job;
  job.Rank(0).Kernel(7, "ncclKernel", 0, 1).Op(1, "nccl:all_reduce", 0, 1);
  const model::Run run = job.Build();
  const std::vector<bool> is_communication = ClassifyCommunication(run);
  NameId kernel;
  NameId annotation;
  ASSERT_TRUE(run.names.Find("ncclKernel", &kernel));
  ASSERT_TRUE(run.names.Find("nccl:all_reduce", &annotation));
  EXPECT_TRUE(is_communication[kernel.value]);
  EXPECT_FALSE(is_communication[annotation.value]);
}

TEST(KernelKindTest, KernelsWithCollectiveMetadataAreCommunicationWhateverTheirName) {
  testing::RunBuilder job;
  auto& rank = job.Rank(0);
  rank.Kernel(7, "mystery", 0, 1);
  model::CollectiveRecord record;
  record.source = model::CollectiveRecord::Source::kKernel;
  record.event_name = rank.Name("mystery");
  rank.Collective(record);
  const model::Run run = job.Build();
  NameId kernel;
  ASSERT_TRUE(run.names.Find("mystery", &kernel));
  EXPECT_TRUE(ClassifyCommunication(run)[kernel.value]);
}

}  // namespace
}  // namespace lockstep::analysis
