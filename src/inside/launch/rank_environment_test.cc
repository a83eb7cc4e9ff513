#include "inside/launch/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inside/launch/recorded_environment.h"

namespace lockstep::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Expected {
  const char* file;
  Launcher launcher;
  int32_t rank;
  std::optional<int32_t> world_size;
  std::optional<int32_t> local_rank;
  std::optional<int32_t> local_size;
  std::optional<int32_t> node;
};

// The real rank by the data's README: the last of 4 on 2 nodes, of 2 on one host, or 5 of 8 on 4 nodes.
TEST(RankEnvironmentTest, RecordedLaunchersSayTheRankThatTheProcessHad) {
  const Expected cases[] = {
      {"launchers/openmpi-mpirun.txt", Launcher::kOpenMpi, 1, 2, 1, 2, std::nullopt},
      {"launchers/openmpi-mpirun-in-slurm.txt", Launcher::kOpenMpi, 3, 4, 1, 2, std::nullopt},
      {"launchers/openmpi-mpirun-in-pbs.txt", Launcher::kOpenMpi, 5, 8, 1, 2, std::nullopt},
      {"launchers/mpich-hydra.txt", Launcher::kHydra, 1, 2, 1, 2, std::nullopt},
      {"launchers/mpich-hydra-in-slurm.txt", Launcher::kHydra, 3, 4, 1, 2, std::nullopt},
      {"launchers/mpich-hydra-in-pbs.txt", Launcher::kHydra, 5, 8, 1, 2, std::nullopt},
      {"launchers/srun.txt", Launcher::kSlurm, 3, 4, 1, 2, 1},
      {"launchers/srun-pmi2.txt", Launcher::kHydra, 3, 4, 1, 2, 1},
      {"launchers/srun-pmix.txt", Launcher::kPmix, 3, 4, 1, 2, 1},
      {"launchers/torchrun-in-srun.txt", Launcher::kTorchrun, 3, 4, 1, 2, 1},
  };
  for (const Expected& expected : cases) {
    SCOPED_TRACE(expected.file);
    const auto environment = recorded::Variables(expected.file);
    if (!environment)
      GTEST_SKIP() << "the recorded schedulers of the shared data are not there: LOCKSTEP_DATA names their folder";
    const RankIdentity identity = FindRank(*environment);
    EXPECT_EQ(LauncherName(identity.launcher), std::string(LauncherName(expected.launcher)));
    EXPECT_EQ(identity.rank, expected.rank);
    EXPECT_EQ(identity.world_size, expected.world_size);
    EXPECT_EQ(identity.local_rank, expected.local_rank);
    EXPECT_EQ(identity.local_size, expected.local_size);
    EXPECT_EQ(identity.node, expected.node);
    EXPECT_THAT(identity.notes, IsEmpty());
  }
}

TEST(RankEnvironmentTest, BatchScriptsAndInteractiveAllocationsAreNoRanks) {
  for (const char* file : {"slurm/env-batch-script.txt", "pbs/env-batch-script.txt"}) {
    const auto environment = recorded::Variables(file);
    if (!environment)
      GTEST_SKIP() << "the recorded schedulers of the shared data are not there: LOCKSTEP_DATA names their folder";
    EXPECT_EQ(FindRank(*environment).launcher, Launcher::kAlone) << file;
  }
  EXPECT_EQ(FindRank(Environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}})).rank, std::nullopt);
}

TEST(RankEnvironmentTest, LaunchersWithoutRecordingsByTheirTable) {
  const RankIdentity pals = FindRank(Environment({{"PALS_RANKID", "5"},
                                                  {"PMI_RANK", "5"},
                                                  {"PMI_SIZE", "8"},
                                                  {"PALS_LOCAL_RANKID", "1"},
                                                  {"PMI_LOCAL_SIZE", "4"},
                                                  {"PALS_NODEID", "1"}}));
  EXPECT_EQ(pals.launcher, Launcher::kPals);
  EXPECT_EQ(std::make_tuple(pals.rank, pals.world_size, pals.local_rank, pals.local_size, pals.node),
            std::make_tuple(5, 8, 1, 4, 1));
  const RankIdentity jsrun = FindRank(
      Environment({{"JSM_NAMESPACE_RANK", "2"}, {"JSM_NAMESPACE_SIZE", "4"}, {"JSM_NAMESPACE_LOCAL_RANK", "0"}}));
  EXPECT_EQ(std::make_tuple(jsrun.rank, jsrun.world_size, jsrun.local_rank), std::make_tuple(2, 4, 0));
  const RankIdentity flux = FindRank(Environment(
      {{"FLUX_TASK_RANK", "3"}, {"FLUX_JOB_SIZE", "4"}, {"FLUX_TASK_LOCAL_ID", "1"}, {"FLUX_JOB_NNODES", "2"}}));
  EXPECT_EQ(std::make_tuple(flux.rank, flux.world_size, flux.local_rank), std::make_tuple(3, 4, 1));
  EXPECT_EQ(flux.node, std::nullopt);
  const RankIdentity mvapich = FindRank(
      Environment({{"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_SIZE", "2"}, {"MV2_COMM_WORLD_LOCAL_RANK", "1"}}));
  EXPECT_EQ(std::make_tuple(mvapich.rank, mvapich.world_size, mvapich.local_rank), std::make_tuple(1, 2, 1));
  EXPECT_EQ(FindRank(Environment({{"JAX_PROCESS_ID", "1"}, {"JAX_NUM_PROCESSES", "2"}})).rank, 1);
}

TEST(RankEnvironmentTest, PodsOfTheTrainingOperator) {
  const Environment pod(
      {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"PET_NODE_RANK", "2"}, {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}});
  const RankIdentity identity = FindRank(pod);
  EXPECT_EQ(std::make_tuple(identity.rank, identity.world_size, identity.local_rank, identity.node),
            std::make_tuple(2, 4, 0, 2));
  // Of a pod with several processes RANK is the pod's, and torchrun in it has not given out ranks yet.
  EXPECT_EQ(FindRank(Environment({{"RANK", "2"}, {"WORLD_SIZE", "16"}, {"PET_NPROC_PER_NODE", "4"}})).rank,
            std::nullopt);
}

TEST(RankEnvironmentTest, RanksLeftInAShellArePassedOverAndToldOf) {
  const RankIdentity identity = FindRank(Environment({{"RANK", "0"},
                                                      {"LOCAL_RANK", "0"},
                                                      {"WORLD_SIZE", "1"},
                                                      {"OMPI_COMM_WORLD_RANK", "3"},
                                                      {"OMPI_COMM_WORLD_SIZE", "4"}}));
  EXPECT_EQ(identity.rank, 3);
  ASSERT_EQ(identity.notes.size(), 1U);
  EXPECT_THAT(identity.notes[0], HasSubstr("RANK=0 of WORLD_SIZE=1 is ignored for OMPI_COMM_WORLD_RANK=3"));
  // A torchrun on each node of its own is not a leftover.
  EXPECT_EQ(FindRank(Environment({{"RANK", "0"},
                                  {"LOCAL_RANK", "0"},
                                  {"WORLD_SIZE", "1"},
                                  {"TORCHELASTIC_RUN_ID", "none"},
                                  {"SLURM_PROCID", "1"},
                                  {"SLURM_STEP_ID", "0"},
                                  {"SLURM_NTASKS", "2"}}))
                .rank,
            0);
}

TEST(RankEnvironmentTest, ARankOutsideOfItsWorldLeavesTheWorldOut) {
  const RankIdentity identity = FindRank(Environment({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}));
  EXPECT_EQ(identity.rank, 4);
  EXPECT_EQ(identity.world_size, std::nullopt);
  EXPECT_EQ(identity.notes.size(), 1U);
}

TEST(RankEnvironmentTest, UnevenNodesHaveTheirOwnSizes) {
  for (const auto& [node, size] : {std::pair<const char*, int>{"0", 2}, {"2", 2}, {"3", 1}}) {
    const Environment step({{"SLURM_PROCID", "0"},
                            {"SLURM_STEP_ID", "0"},
                            {"SLURM_NODEID", node},
                            {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}});
    EXPECT_EQ(FindRank(step).local_size, size);
  }
  for (const char* broken : {"", "x", "2(x", "2(x)", ",", "(x3)"}) {
    const Environment step(
        {{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_NODEID", "7"}, {"SLURM_STEP_TASKS_PER_NODE", broken}});
    EXPECT_EQ(FindRank(step).local_size, std::nullopt) << broken;
  }
}

TEST(RankEnvironmentTest, ARestartIsKnown) {
  EXPECT_EQ(
      FindRank(
          Environment({{"RANK", "1"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_RESTART_COUNT", "2"}}))
          .restart,
      2);
}

}  // namespace
}  // namespace lockstep::launch
