#include "programs/cli/run/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace lockstep::cli {
namespace {

const char* const kVariables[] = {"RANK",
                                  "LOCAL_RANK",
                                  "OMPI_COMM_WORLD_RANK",
                                  "MV2_COMM_WORLD_RANK",
                                  "PALS_RANKID",
                                  "PMI_RANK",
                                  "PMIX_RANK",
                                  "FLUX_TASK_RANK",
                                  "SLURM_PROCID",
                                  "SLURM_STEP_ID",
                                  "SLURM_JOB_NUM_NODES",
                                  "JSM_NAMESPACE_RANK",
                                  "FLUX_JOB_NNODES",
                                  "SLURM_NNODES",
                                  "PBS_NODEFILE"};

class LauncherTest : public ::testing::Test {
 protected:
  void SetUp() override { Set({}); }
  void TearDown() override { Set({}); }
  static void Set(const std::map<std::string, std::string>& variables) {
    for (const char* name : kVariables) ::unsetenv(name);
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
};

TEST_F(LauncherTest, TheInnermostLauncherSaysTheRank) {
  EXPECT_EQ(RankFromEnvironment(), std::nullopt);
  Set({{"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(RankFromEnvironment(), 1);
  Set({{"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}, {"RANK", "3"}, {"LOCAL_RANK", "1"}});
  EXPECT_EQ(RankFromEnvironment(), 3);
  Set({{"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}, {"PMI_RANK", "3"}});
  EXPECT_EQ(RankFromEnvironment(), 3);
}

TEST_F(LauncherTest, ABatchScriptIsNoRank) {
  Set({{"SLURM_PROCID", "0"}});
  EXPECT_EQ(RankFromEnvironment(), std::nullopt);
  Set({{"RANK", "4294967296"}, {"LOCAL_RANK", "0"}, {"PMI_RANK", "-1"}, {"PMIX_RANK", "2x"}});
  EXPECT_EQ(RankFromEnvironment(), std::nullopt);
}

TEST_F(LauncherTest, SrunStartsElsewhereUnlessTheJobHasOneNode) {
  EXPECT_TRUE(StartsOnOtherNodes({"srun", "python", "train.py"}));
  EXPECT_TRUE(StartsOnOtherNodes({"/usr/bin/srun", "-n4", "x"}));
  Set({{"SLURM_JOB_NUM_NODES", "1"}});
  EXPECT_FALSE(StartsOnOtherNodes({"srun", "python", "train.py"}));
  EXPECT_TRUE(StartsOnOtherNodes({"sbatch", "job.sh"}));
  Set({{"SLURM_JOB_NUM_NODES", "4"}});
  EXPECT_TRUE(StartsOnOtherNodes({"srun", "python", "train.py"}));
  EXPECT_TRUE(StartsOnOtherNodes({"mpirun", "-np", "4", "./p"}));
}

TEST_F(LauncherTest, MpiexecStartsHereUnlessHostsAreNamed) {
  EXPECT_FALSE(StartsOnOtherNodes({"mpiexec", "-n", "4", "python", "train.py"}));
  EXPECT_TRUE(StartsOnOtherNodes({"mpiexec", "--hostfile=hosts", "python", "train.py"}));
  EXPECT_TRUE(StartsOnOtherNodes({"mpirun", "-H", "a,b", "python", "train.py"}));
  EXPECT_FALSE(StartsOnOtherNodes({"torchrun", "--nproc-per-node", "4", "train.py"}));
  EXPECT_FALSE(StartsOnOtherNodes({"python", "-f", "hosts"}));
  EXPECT_FALSE(StartsOnOtherNodes({}));
}

}  // namespace
}  // namespace lockstep::cli
